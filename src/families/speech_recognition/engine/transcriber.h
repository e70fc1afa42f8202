#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ctc/ctc_search.h"
#include "families/speech_recognition/engine/label_model.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "models/speech/attention_decoder.h"

/// From what a model says of frames to texts. Shape letters: T rows of an utterance, L tokens.
namespace stretto::tasks {

/// A text that was heard.
struct Transcript {
  std::string text = {};
  double score = 0;                      ///< natural log; what n best are sorted by
  std::vector<ctc::CtcWord> words = {};  ///< by rows of the model, if has_times
  bool has_times = true;                 ///< false: words have no rows
};

/// What the tokens of a tokenizer are for a search: text, and where words begin. With a lexicon,
/// `tokenizer.word_boundary` of phonemes separates words.
ctc::CtcLabels ctc_labels_of(const text::Tokenizer& tokenizer,
                             const experiment::SpeechRecognitionOptions& own);

/// Reads texts as `[decode]` says. Safe to use from several threads.
class Transcriber {
 public:
  /// Reads the language model and the lexicon. Throws as ctc::CtcDecoder and open_label_model().
  /// @param units   with a tokenizer
  /// @param device  of a language model of ours
  Transcriber(const experiment::SpeechRecognitionOptions& own, const SpeechUnits& units,
              at::Device device);

  /// Best first, at least one. Throws as ctc::CtcDecoder::decode().
  /// @param log_probs  [T, L + 1], natural logs, class L is the blank; T may be 0
  std::vector<Transcript> read(std::span<const float> log_probs) const;
  /// The same by the attention decoder, for each utterance of a batch. An utterance whose numbers
  /// are not finite has one text without words, and a score of NaN.
  /// @param log_probs  of CTC as above, of all rows, for decode.ctc_weight
  std::vector<std::vector<Transcript>> read(models::AttentionDecoder& decoder,
                                            const models::Encoded& memory,
                                            std::span<const float> log_probs) const;

  Transcript transcript_of(const ctc::CtcHypothesis& hypothesis) const;
  const ctc::CtcDecoder& decoder() const { return decoder_; }
  /// What one search is given beside the decoder: of decode.lm_run, else null.
  std::unique_ptr<decoding::TokenScorer> scorer() const;
  bool reads_by_attention() const { return by_attention_; }

 private:
  const experiment::SpeechDecodeOptions options_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const bool by_attention_;
  /// Whether a token may be a part of a character, so that a text is made of all of them together.
  const bool has_byte_tokens_;
  ctc::CtcDecoder decoder_;
  std::shared_ptr<const LabelModel> label_model_;  ///< null without decode.lm_run
};

/// Models, and how what they say is read.
class SpeechReader {
 public:
  /// Throws as Transcriber, and Error(kUsage) where decode.reader = "attention" meets a model
  /// without such a decoder, or an ensemble.
  SpeechReader(std::vector<std::shared_ptr<models::SpeechModel>> models, const SpeechUnits& units,
               const experiment::SpeechRecognitionOptions& own);

  /// What models together make of B utterances.
  struct Heard {
    std::vector<std::vector<Transcript>> transcripts = {};  ///< [B], best first; of kTokens
    /// [B] of [T, L + 1] fp32 on the CPU, of kTokens: natural logs, class L is the blank. Views of
    /// one tensor; of several models, of mean probabilities.
    std::vector<at::Tensor> log_probs = {};
    at::Tensor label_logits = {};  ///< [B, L] of kLabel: of several models, of mean probabilities
    std::vector<char> is_finite = {};  ///< [B]: whether all numbers are that the answer rests on
    /// [B], of models::SpeechLosses or of labels; on the CPU.
    at::Tensor losses = {}, possible = {};
  };
  /// @param targets  of the same utterances; null: no losses are wanted
  /// @param beat     is called between utterances
  /// Computes without gradients, from any thread.
  Heard hear(const nn::PackedRows& frames, const nn::PackedRows* targets,
             const std::function<void()>& beat = {}) const;

  const Transcriber& transcriber() const { return *transcriber_; }

 private:
  Heard hear_tokens(const nn::PackedRows& frames, const nn::PackedRows* targets,
                    const std::function<void()>& beat) const;
  Heard hear_labels(const nn::PackedRows& frames, const nn::PackedRows* targets) const;

  std::vector<std::shared_ptr<models::SpeechModel>> models_;
  models::SpeechTarget target_;
  std::shared_ptr<const Transcriber> transcriber_;  ///< null of kLabel
};

}  // namespace stretto::tasks
