#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compress/quantise_scales.h"
#include "store/quantised.h"

/// What the ways of rounding share: weights as a matrix, and codes in the making.
namespace stretto::compress {

/// A weight [rows, …] as fp32 [rows, columns], dense on the CPU. Throws Error(kNumeric) for one
/// that is infinite or NaN, c10::Error for a shape that cannot be packed so.
at::Tensor dense_matrix(const at::Tensor& weight, const store::QuantFormat& format,
                        const std::string& name);

/// Codes, scales and zeros, all 0.
store::QuantisedValues empty_values(const store::QuantFormat& format,
                                    const store::QuantLayout& layout);

ScaleAndZero choice_at(const store::QuantisedValues& values, int64_t index);
void set_choice(store::QuantisedValues& values, int64_t index, const ScaleAndZero& choice);

/// Packs them. Throws Error(kBadData) for a scale that fp16 does not have.
store::QuantisedTensor packed_values(const store::QuantFormat& format,
                                     const std::vector<int64_t>& shape,
                                     const store::QuantisedValues& values, const std::string& name);

}  // namespace stretto::compress
