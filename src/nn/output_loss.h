#pragma once

#include <cstdint>
#include <functional>

#include "kernels/kernels.h"

namespace stretto::nn {

/// What stands behind the last layer in training: the output projection and the loss in one, so
/// that a model never holds [N, V] logits. `losses` makes them, `models` call them.
///
/// (x [N, D], weight [V, D], targets int64 [N], num_classes <= V, bias [V] or undefined) -> sums
/// over the N tokens. A loss of pairs has x [2N, D]: rows n and N + n are two passes over token n.
/// @param softcap  bends the logits as kernels::linear_cross_entropy says; 0 = as they are. A loss
///                 that cannot throws c10::Error
using OutputLoss = std::function<kernels::CrossEntropy(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets, int64_t num_classes,
    const at::Tensor& bias, double softcap)>;

/// What a model minimises.
struct OutputLosses {
  OutputLoss one = {};   ///< of one pass; empty for a model that only decodes
  OutputLoss pair = {};  ///< of pairs, in training; empty = one pass there too
};

}  // namespace stretto::nn
