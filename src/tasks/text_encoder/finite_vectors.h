#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <span>
#include <string>

#include "data/text_input.h"

namespace stretto::tasks {

/// Refuses vectors with a value that is infinite or NaN: Error(kNumeric), which names the line of
/// the first one, and the first weight of the model that has such a value itself.
///
/// @param vectors  fp32 [B, D] on the CPU, contiguous
/// @param lines    [B], where they come from
/// @param run      folder of the model
void require_finite(const at::Tensor& vectors, std::span<const data::InputLine> lines,
                    const torch::nn::Module& model, const std::string& run);

}  // namespace stretto::tasks
