#pragma once

#include <vector>

#include "kernels/convolution/convolution.h"

/// Windows as tables for products and loops on the CPU.
namespace stretto::kernels {

/// A sequence's rows and its outputs: first ones and numbers of them.
struct LineSpan {
  int64_t in, length, out, out_length;
};
std::vector<LineSpan> spans_of(const TimeWindow& window);

/// Tap i of output t is row t * stride + i * dilation - before of its own span.
struct LineTaps {
  int64_t count, stride, before, dilation = 1;
};

/// As below, of any spans and taps.
at::Tensor input_lines(const std::vector<LineSpan>& spans, const LineTaps& taps);
at::Tensor output_lines(const std::vector<LineSpan>& spans, const LineTaps& taps);

/// Row of x that tap i of output row n sees, -1 where there is none: int32 [M, K].
at::Tensor input_lines(const TimeWindow& window);

/// Output row whose tap i sees row n of x, -1 where there is none: int32 [N, K].
at::Tensor output_lines(const TimeWindow& window);

/// The rows that one tap sees: column `tap` of `lines` [M, K] -> [M, C], zeroes where there is
/// none.
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& lines, int64_t tap);

}  // namespace stretto::kernels
