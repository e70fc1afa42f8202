#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/synthesis/synthesis_model.h"
#include "models/synthesis/synthesis_options.h"

namespace stretto::models {

/// Losses of a micro-batch, each summed over its N frames; a mean over frames divides by the frames
/// of the whole update. Nothing is padded, so nothing has to be masked.
struct SynthesisLosses {
  at::Tensor total;      ///< scalar, differentiable: what is minimised
  at::Tensor frames;     ///< of frames before and behind the post-net, both together
  at::Tensor magnitude;  ///< undefined unless the model writes both
  at::Tensor stop;       ///< weighted cross entropy of the frame being the last one
  at::Tensor guided;     ///< undefined unless `guided_attention` is above 0
  /// No gradient: mean absolute difference of a frame behind the post-net (of its first part), and
  /// frames on whose side of a probability of 0.5 the model is wrong.
  at::Tensor mel_l1, stop_errors;
};

/// With frame n of sentence b and its targets y, A the attention:
///
///     frame     d(before, y) + d(after, y),  d the mean over a frame's numbers (options.kind)
///     magnitude d(magnitude, y's magnitude) * magnitude_weight
///     stop      -(p z log s(x) + (1 - z) log(1 - s(x))) * stop_weight,  z = 1 for a last frame,
///               p = stop_positive_weight
///     guided    sum over symbols of A (1 - exp(-(symbol / symbols - step / steps)^2 / (2 g^2)))
///               * guided_attention, g = guided_width, for each frame of the step
///
/// @param targets  values [N, W + F]
/// @param text     offsets of the symbols
SynthesisLosses synthesis_losses(const SynthesisOutput& output, const nn::PackedRows& targets,
                                 const kernels::Offsets& text, const FrameParts& parts,
                                 const SynthesisLossOptions& options);

/// What forward() has to give for these losses.
inline WantsAttention attention_for(const SynthesisLossOptions& options) {
  return options.guided_attention > 0 ? WantsAttention::kGradient : WantsAttention::kNo;
}

/// How orderly one sentence is read.
struct AttentionShape {
  /// Share of all attention within a tenth of the symbols (at least one) from the diagonal: the
  /// diagonal rate of Ren et al. 2019 (arXiv:1905.09263), between 0 and 1.
  double diagonality = 0;
  /// Share of steps whose likeliest symbol is that of the step before or one of the next two; 1 for
  /// a single step.
  double monotonic = 0;
};

/// @param weights  [steps * symbols], rows of steps; both above 0
AttentionShape attention_shape(std::span<const float> weights, int64_t symbols);

}  // namespace stretto::models
