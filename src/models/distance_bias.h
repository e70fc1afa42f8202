#pragma once

#include "models/parts.h"
#include "models/transformer_layers.h"
#include "nn/distance_bias.h"

namespace stretto::models {

/// The bias of one stack where `positions` is "alibi" or "t5", registered below `owner` as
/// `distance_bias`; null for every other kind of positions.
nn::DistanceBias make_distance_bias(torch::nn::Module& owner, const PartSetup& setup,
                                    const TransformerPart& options, bool causal);

/// Its table for sequences of up to `longest` tokens; nothing of a null one.
kernels::DistanceBias bias_of(const nn::DistanceBias& bias, int64_t longest,
                              const at::Tensor& like);

}  // namespace stretto::models
