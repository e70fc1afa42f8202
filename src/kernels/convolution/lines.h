#pragma once

#include "kernels/convolution/convolution.h"

/// Windows as tables for products and loops on the CPU.
namespace stretto::kernels {

/// Row of x that tap i of output row n sees, -1 where there is none: int32 [M, K].
at::Tensor input_lines(const TimeWindow& window);

/// Output row whose tap i sees row n of x, -1 where there is none: int32 [N, K].
at::Tensor output_lines(const TimeWindow& window);

/// The rows that one tap sees: column `tap` of `lines` [M, K] -> [M, C], zeroes where there is
/// none.
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& lines, int64_t tap);

}  // namespace stretto::kernels
