#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/compute.h"

/// Rounding of whole fp32 tensors on the CPU to the values of a half type (compute.h), with
/// threads. Equal to `x.to(at::kBFloat16).to(at::kFloat)`, or at::kHalf, in every bit but those of
/// a NaN.
namespace stretto::kernels {

/// at::kBFloat16 or at::kHalf.
inline at::ScalarType half_type(Compute compute) {
  return compute == Compute::kBf16 ? at::kBFloat16 : at::kHalf;
}

/// A dense copy with rounded values; x itself when nothing is to be rounded or x is undefined.
at::Tensor rounded(const at::Tensor& x, Compute compute);

/// In place; x is contiguous.
void round_(at::Tensor& x, Compute compute);

}  // namespace stretto::kernels
