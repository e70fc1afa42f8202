#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/convolution/convolution_2d.h"
#include "kernels/convolution/packed_2d.h"

/// Convolutions over rows and columns by our own loops (convolution/windows.inc), fp32 tensors on a
/// CPU: windows are read where they lie, between columns of zeroes, and what an output is depends
/// on nothing but its window. In half precision operands and results are rounded, and the products
/// are fp32 ones.
namespace stretto::kernels::windows {

/// Which rows and columns an output sees, and how many outputs there are.
struct Form {
  /// Rows that belong together, such as a picture's or an utterance's, and their outputs.
  struct Span {
    int64_t in, length, out, out_length;  // first rows and numbers of rows
  };
  std::vector<Span> spans;
  /// Tap i of output row t is row t * stride + i - before of its span.
  struct Side {
    int64_t taps, stride, before;
  };
  Side rows, columns;
  int64_t num_columns, num_columns_out;
  int64_t channels, filters;

  int64_t rows_in() const { return spans.empty() ? 0 : spans.back().in + spans.back().length; }
  int64_t rows_out() const {
    return spans.empty() ? 0 : spans.back().out + spans.back().out_length;
  }

  static Form of_packed(const at::Tensor& weight, const PackedPlanes& planes);
  /// Of x [N, C, H, W].
  static Form of_planes(const at::Tensor& x, const at::Tensor& weight, const PlaneWindow& window);
};

/// x [rows_in, num_columns * channels], weight [O, C, taps of rows, taps of columns], bias [O] or
/// undefined -> [rows_out, num_columns_out * O].
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       const Form& form);

/// Whether that is taken for packed rows: at every level but the portable one. libtorch has no fast
/// gradient for filters of one channel, and falls back on a loop that takes minutes.
bool takes_packed_rows();

/// The gradient of the weight of a convolution of planes (convolution_2d.h), [O, C, kh, kw]: of x
/// [N, C, H, W] and the slopes dy [N, O, H', W'], fp32 both.
at::Tensor filter_slopes(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                         const PlaneWindow& window);

/// Whether that is taken: where it is known to beat libtorch's, a rule on processor and filters.
bool takes_filter_slopes(const at::Tensor& weight, const PlaneWindow& window);

}  // namespace stretto::kernels::windows
