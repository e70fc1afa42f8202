#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "data/speech/speech_batches.h"
#include "data/speech/speech_set.h"
#include "text/target_options.h"
#include "text/target_text.h"
#include "text/tokenizer.h"

/// What is said, as ids: the targets of a recogniser, the input of a synthesiser.
namespace stretto::data {

/// Texts of a set that a tokenizer is trained on: of type char the alphabet, if `[tokenizer]` names
/// one; else the transcripts as targets are made of them.
std::unique_ptr<text::LineSource> transcript_lines(std::shared_ptr<const SpeechSet> set,
                                                   const text::TargetOptions& options);

/// What no id could be found for.
struct UnknownText {
  std::map<std::string, int64_t> parts;  ///< characters, or words: how often
  int64_t count = 0;                     ///< of all
  int64_t utterances = 0;                ///< that have some
  int64_t first = -1;                    ///< the first such utterance
  bool are_words = false;
  std::string fate = {};  ///< what becomes of them: "they are left out of the texts"

  /// "the tokenizer lacks 7 characters in 3 utterances: `é` 4, `—` 3; they are left out of the
  /// texts"; empty without any.
  std::string text() const;
};

/// Utterances whose sound is too short for their text under CTC.
struct ImpossiblePairs {
  int64_t count = 0;
  std::vector<int64_t> first;  ///< up to ten of them, as numbers in the set
};

/// The texts of a set as ids. Safe to use from several threads.
struct Transcripts {
  /// Those that can be used, by the tokenizer's ids without beginning or end.
  UtteranceSamples samples;
  std::vector<std::string> texts;  ///< [samples]: as target_text() gives them, for scores
  UnknownText unknown;
  int64_t empty = 0;     ///< left out: no text is left, or no id
  int64_t unusable = 0;  ///< left out for an unknown character, with tokenizer.unknown = "skip"
  ImpossiblePairs impossible;

  /// What was left out or changed, a line each, for the log.
  std::vector<std::string> remarks(const SpeechSet& set) const;
};

/// Makes targets of the texts of a set, by `[tokenizer]`: rules of normalisation, pronunciations,
/// what becomes of characters that the tokenizer lacks. The log is told by the caller.
/// Throws as text::TargetText() does.
Transcripts encode_transcripts(const SpeechSet& set, const text::TargetOptions& options,
                               const text::Tokenizer& tokenizer, int64_t threads);

/// Frames that CTC needs for these labels: one each, and a blank between two equal neighbours.
int64_t ctc_frames(std::span<const int64_t> labels);

/// Leaves out, and counts, the samples whose sound has fewer frames behind the model than CTC needs
/// for their targets.
/// @param output_length  of seconds: the frames behind the model
void drop_impossible(Transcripts& transcripts,
                     const std::function<int64_t(double seconds)>& output_length);

/// One utterance's targets, for `infer` and single checks: as encode_transcripts() makes them.
std::vector<int64_t> encode_transcript(std::string_view text, const text::TargetText& rules,
                                       const text::Tokenizer& tokenizer);

}  // namespace stretto::data
