#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/convolution/convolution_2d.h"
#include "kernels/convolution/packed_2d.h"

/// Convolutions over rows and columns by our own loops (convolution/windows.inc), fp32 tensors on a
/// CPU: windows are read where they lie, between columns of zeroes, and what an output is depends
/// on nothing but its window. In half precision operands and results are rounded, and the products
/// are fp32 ones.
namespace stretto::kernels::windows {

/// As packed_convolution_2d.
at::Tensor packed_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              const PackedPlanes& planes);

/// Whether that is taken: at every level but the portable one. libtorch has no fast
/// gradient for filters of one channel, and falls back on a loop that takes minutes.
bool takes_packed_rows();

/// The gradient of the weight of a convolution of planes (convolution_2d.h), [O, C, kh, kw]: of x
/// [N, C, H, W] and the slopes dy [N, O, H', W'], fp32 both.
at::Tensor filter_slopes(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                         const PlaneWindow& window);

/// Whether that is taken: where it is known to beat libtorch's, a rule on processor and filters.
bool takes_filter_slopes(const at::Tensor& weight, const PlaneWindow& window);

}  // namespace stretto::kernels::windows
