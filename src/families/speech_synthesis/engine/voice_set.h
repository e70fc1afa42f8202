#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch_source.h"
#include "data/labelled/labels.h"
#include "data/length_batches.h"
#include "data/speech/speech_batches.h"
#include "data/speech/speech_set.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "text/target_text.h"
#include "text/tokenizer.h"

/// Clips with their texts as symbols.
namespace stretto::tasks {

/// From a text to the symbols that a model speaks: by `[tokenizer]`, with the end of a text behind
/// them where the tokenizer has one. Safe to use from several threads.
class VoiceText {
 public:
  /// Throws as text::TargetText does.
  VoiceText(const text::TargetOptions& options, std::shared_ptr<const text::Tokenizer> tokenizer);

  const text::TargetOptions& options() const { return options_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Empty for a text that no symbol is left of.
  std::vector<int64_t> symbols(std::string_view text) const;
  /// The text as it is spoken, by the rules, for people.
  std::string normalised(std::string_view text) const { return rules_.normalised(text); }
  /// Adds the end to symbols without it.
  void end(std::vector<int64_t>& symbols) const;
  /// Characters of a text that have no symbol. Of type char alone; else 0.
  int64_t num_unknown(std::string_view text) const;

 private:
  text::TargetOptions options_;
  text::TargetText rules_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

/// The clips of one key. Samples of batches are numbers of clips.
struct VoiceSet {
  std::shared_ptr<const data::SpeechSet> clips;
  data::UtteranceSamples samples;    ///< those that can be used, with ends
  std::vector<std::string> texts;    ///< [samples]: as they are spoken
  std::vector<int64_t> speakers;     ///< [clips]; empty = the run has one
  std::vector<std::string> remarks;  ///< on texts, for the log

  int64_t num_samples() const { return std::ssize(samples.ids); }
  int64_t speaker(int64_t clip) const {
    return speakers.empty() ? 0 : speakers[static_cast<size_t>(clip)];
  }
  /// The text of a sample by the number of its clip.
  const std::string& text_of(int64_t clip) const;
  /// A hash of sounds, texts and symbols.
  uint64_t hash() const;
};

/// @param key    "data.train", for messages and limits
/// @param tells  whether this process logs what is odd about the clips
/// Throws as data::open_speech() and speaker_numbers() do, and Error(kBadData) where no clip has a
/// text that can be used.
VoiceSet open_voice_set(const experiment::SpeechSynthesisOptions& own, const std::string& key,
                        const std::vector<std::string>& paths, const VoiceText& text,
                        const std::optional<data::Labels>& speakers, int64_t threads, bool tells);

/// Micro-batches by seconds. @param batch_seconds  of a batch
std::unique_ptr<data::BatchSource> voice_batches(const VoiceSet& set,
                                                 const data::SpeechDataOptions& options,
                                                 double batch_seconds, data::Shuffle shuffle,
                                                 uint64_t seed);

}  // namespace stretto::tasks
