#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "decoding/frame_model.h"
#include "models/encoder.h"
#include "models/model_cost.h"
#include "models/synthesis/synthesis_options.h"
#include "nn/init.h"
#include "nn/packed_rows.h"

/// Text to frames of sound.
///
/// Shape letters: B sentences, S symbols of all sentences (characters, phonemes), N frames of all
/// sentences, W width of a frame that the decoder writes, F bins of a magnitude that is made of mel
/// bands, R frames that a step of the decoder writes.
namespace stretto::models {

/// A batch of sentences.
struct SynthesisInput {
  nn::PackedRows text;       ///< ids, S rows; no sentence is empty
  at::Tensor speakers = {};  ///< int64 [B]; undefined where the model has one speaker
  /// Frames of a sound in the wanted style for each sentence, values [rows, W]; without values: the
  /// mean of all style tokens. Read only by models with style tokens.
  nn::PackedRows style = {};
  /// int64 [B], sentence_keys(): the pre-net's masks outside of training are a function of
  /// (prenet_seed, key, step), so that a sentence sounds the same in every batch.
  at::Tensor sentence_keys = {};
  uint64_t prenet_seed = 1;
};

/// What teacher forcing gives.
struct SynthesisOutput {
  at::Tensor before;       ///< [N, W]: what the decoder wrote
  at::Tensor after;        ///< [N, W]: behind the post-net; `before` itself without one
  at::Tensor magnitude;    ///< [N, F]; undefined unless the model writes both
  at::Tensor stop_logits;  ///< [N]: of the frame being the last one
  /// Attention weights: of each sentence its block [steps, symbols], flattened and joined, the mean
  /// over layers. With a gradient for losses that read it; undefined unless wanted.
  at::Tensor attention;
  kernels::Offsets steps;  ///< of the decoder's steps: ceil(frames / R) for each sentence
  int64_t reduction = 1;   ///< R
};

/// What forward is asked for beside the frames.
enum class WantsAttention : uint8_t {
  kNo,
  kValues,    ///< for a report or a score
  kGradient,  ///< for a loss
};

/// A network from text to frames. Single-device code, packed rows throughout. A frame has the parts
/// of FrameParts side by side; the decoder writes the first of them, and the second is made of it.
class SynthesisModel : public torch::nn::Module {
 public:
  /// Teacher forcing: each step reads the last of the true frames before it.
  /// @param frames  values [N, W or W + F]: of a frame the first W numbers are read
  virtual SynthesisOutput forward(const SynthesisInput& input, const nn::PackedRows& frames,
                                  const ForwardContext& context,
                                  WantsAttention wants = WantsAttention::kNo) = 0;

  /// Free running: the decoder's own frames, a lane for each sentence, before the post-net.
  virtual std::unique_ptr<decoding::FrameModel> start(const SynthesisInput& input) = 0;

  /// What stands behind the decoder: frames [N, W] -> [N, W + F], magnitudes beside mel bands where
  /// the model writes both.
  virtual at::Tensor finish(const at::Tensor& frames, const kernels::Offsets& offsets) = 0;

  /// Multiplications and additions of forward for one sentence (models/operations.h).
  virtual double operations(double symbols, double frames) const = 0;

  const FrameParts& parts() const { return parts_; }
  int64_t reduction() const { return reduction_; }  ///< R
  int64_t num_speakers() const { return num_speakers_; }
  bool has_style() const { return has_style_; }

 protected:
  SynthesisModel(const SynthesisKeys& keys, const FrameParts& parts, int64_t num_speakers)
      : parts_(parts),
        reduction_(keys.reduction),
        num_speakers_(num_speakers),
        has_style_(keys.style.is_on()) {}

 private:
  FrameParts parts_;
  int64_t reduction_, num_speakers_;
  bool has_style_;
};

/// What a SynthesisModel is built from.
struct SynthesisSetup {
  SynthesisModelOptions model;
  int64_t num_symbols = 0;       ///< ids of the text, padding among them
  int64_t pad = -1;              ///< id whose vector starts at zero; -1 = none
  int64_t num_speakers = 1;      ///< above 1: each has a vector
  FrameParts parts;              ///< frame_parts()
  uint64_t seed = 1;             ///< of the first weights
  bool draws_weights = true;     ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;  ///< at::kMeta counts parameters without memory
};

/// The model that `model.name` chooses, with first weights that depend on seed and parameter name.
/// Throws Error(kUsage) for options that contradict each other
/// (models/synthesis/synthesis_conflicts.h).
std::shared_ptr<SynthesisModel> make_synthesis_model(const SynthesisSetup& setup);

/// A key for each sentence that is a function of its ids alone, int64 [B].
at::Tensor sentence_keys(const data::PackedTokens& text, c10::Device device);

/// A sentence as sound.
struct SynthesisedFrames {
  at::Tensor frames;     ///< [n, W + F], behind the post-net
  at::Tensor attention;  ///< [steps, symbols]
  decoding::StopReason reason = decoding::StopReason::kLimit;
};

/// Free running to the end: start(), decoding::write_frames() and finish(), without gradient, in
/// evaluation mode. In the order of the sentences. Sentence i is the same in every batch. Throws
/// Error(kNumeric) for frames that are not finite.
std::vector<SynthesisedFrames> synthesise(SynthesisModel& model, const SynthesisInput& input,
                                          const decoding::FrameLimits& limits);

/// Of one sentence of these lengths. The model may have no memory (at::kMeta).
ModelCost cost_of(const SynthesisModel& model, double symbols, double frames);

}  // namespace stretto::models
