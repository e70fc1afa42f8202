#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "data/text_input.h"

namespace stretto::tasks {

/// Refuses vectors with a value that is infinite or NaN, of weights that are finite
/// (runs/module_weights.h): Error(kNumeric), which names the line of the first one.
///
/// @param vectors  fp32 [B, D] on the CPU, contiguous
/// @param lines    [B], where they come from
/// @param run      folder of the model
void require_finite(const at::Tensor& vectors, std::span<const data::InputLine> lines,
                    const std::string& run);

}  // namespace stretto::tasks
