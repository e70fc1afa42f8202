#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/heads/ctc.h"
#include "models/model_cost.h"
#include "models/speech/attention_decoder.h"
#include "models/speech/speech_encoder.h"
#include "models/speech/speech_model_options.h"
#include "nn/init.h"
#include "nn/linear.h"

/// Shape letters: N frames and M rows of all utterances, B utterances, F features of a frame, D
/// width of rows, L labels.
namespace stretto::models {

/// What is read from an utterance.
enum class SpeechTarget : uint8_t {
  kTokens,  ///< labels in their order, such as characters: CTC, and attention if model.decoder is
            ///< on
  kLabel,   ///< one of L labels for an utterance, such as a command
};

/// Losses of B utterances, natural log.
struct SpeechLosses {
  at::Tensor each;      ///< [B], differentiable; 0 without a gradient where possible is false
  at::Tensor possible;  ///< bool [B]: whether an utterance has rows enough for its labels
  /// [B], no gradient, the parts of a joint loss; undefined where there is one part alone.
  at::Tensor ctc = {}, attention = {};
};

/// What a model of one kind is built from beside its encoder.
struct SpeechHeadPart {
  nn::Init init;             ///< at the root
  int64_t num_features = 0;  ///< F
  int64_t num_labels = 0;    ///< L
  SpeechTarget target = SpeechTarget::kTokens;
  AttentionDecoderOptions decoder = {};  ///< of the options
  std::string stream_problem = "";       ///< of the options
};

/// A network from frames to scores: an encoder, and a head. Single-device code.
///
/// Parameters are those of `encoder`, and of a head: `ctc.output` (kTokens), or `head` (kLabel), a
/// linear map of the mean row of each utterance. With an attention decoder, which kLabel never has,
/// there are those of `decoder` too.
class SpeechModel : public torch::nn::Module {
 public:
  SpeechModel(std::shared_ptr<SpeechEncoder> encoder, const SpeechHeadPart& part);

  /// @param frames  values [N, F], fp32 or fp64; row_keys in training. An utterance may be empty.
  /// Throws Error(kBadData) for another number of features.
  Encoded encode(const nn::PackedRows& frames, const ForwardContext& context);

  /// Of kTokens: rows -> fp32 (or double) [M, L + 1]; class L is the frame without a label.
  at::Tensor ctc_scores(const Encoded& encoded) const;
  const CtcHead& ctc() const { return *ctc_; }

  /// Of kTokens: what training minimises, CTC's loss, or with a decoder of weight w
  ///
  ///     (1 - w) CTC + w attention        of an utterance whose labels CTC can align
  ///
  /// @param labels  ids of the same utterances (models/packed.h)
  SpeechLosses losses(const Encoded& encoded, const nn::PackedRows& labels,
                      const ForwardContext& context) const;

  /// Of kLabel: logits [B, L], fp32 or double, for models/heads/label.h. An utterance without rows
  /// has the mean 0.
  at::Tensor label_logits(const Encoded& encoded) const;

  /// The decoder that writes tokens one by one, or null.
  AttentionDecoder* attention() const { return decoder_.get(); }

  int64_t output_length(int64_t frames) const { return encoder_->output_length(frames); }
  /// Begins an utterance in pieces, frames [n, F] to scores [m, L + 1] of kTokens; in evaluation.
  /// Throws Error(kUsage) with stream_problem() where the model cannot. An attention decoder takes
  /// no part.
  std::unique_ptr<RowStream> stream();

  /// Multiplications and additions for an utterance of so many frames and labels (models/
  /// operations.h); labels count with a decoder alone.
  double operations(double frames, double labels = 0) const;
  /// Filters of the first layer, [O, 1, time, F], for a report.
  at::Tensor first_filters() const { return encoder_->first_filters(); }

  SpeechEncoder& encoder() const { return *encoder_; }
  SpeechTarget target() const { return target_; }
  int64_t num_labels() const { return num_labels_; }      ///< L
  int64_t num_features() const { return num_features_; }  ///< F

 private:
  SpeechTarget target_;
  int64_t num_labels_, num_features_;
  std::string stream_problem_;
  std::shared_ptr<SpeechEncoder> encoder_;
  std::shared_ptr<CtcHead> ctc_;  ///< null of kLabel
  nn::Linear head_{nullptr};      ///< null of kTokens
  double attention_weight_ = 0;
  std::shared_ptr<AttentionDecoder> decoder_;  ///< null without one
};

/// What a SpeechModel is built from.
struct SpeechModelSetup {
  SpeechModelOptions model;
  int64_t num_features = 80;  ///< F
  int64_t num_labels = 0;     ///< L: tokens of the tokenizer, or labels of utterances
  SpeechTarget target = SpeechTarget::kTokens;
  uint64_t seed = 1;             ///< of the first weights
  bool draws_weights = true;     ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;  ///< at::kMeta counts parameters without memory
};

/// The model that `model.name` chooses, with first weights that depend on seed and parameter name.
/// Throws Error(kUsage) for options that contradict each other (models/speech/speech_conflicts.h).
std::shared_ptr<SpeechModel> make_speech_model(const SpeechModelSetup& setup);

/// Of one utterance of so many frames and labels. The model may have no memory (at::kMeta).
ModelCost cost_of(const SpeechModel& model, double frames, double labels = 0);

}  // namespace stretto::models
