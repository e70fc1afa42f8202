#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

/// Convolutions of planes, of images. The products are libtorch's, which are oneDNN's on a CPU and
/// cuDNN's on a GPU; on a CPU with AVX2 alone, gradients of fp32 filters are our own
/// (convolution/windows.h). Planes are kept channels-last: [N, C, H, W] whose channels lie side by
/// side.
///
/// Shape letters: N samples, C channels, O output channels, G groups, H and W height and width.
namespace stretto::kernels {

/// How a filter moves over a plane, zeroes beyond the borders: the same way in both directions,
/// unless the width has numbers of its own.
struct PlaneWindow {
  int64_t stride = 1;
  int64_t padding = 0;       ///< zeroes on each side
  int64_t groups = 1;        ///< G: output channels of a group see the channels of that group alone
  int64_t stride_width = 0;  ///< 0 = stride
  int64_t padding_width = -1;  ///< -1 = padding

  std::array<int64_t, 2> strides() const {
    return {stride, stride_width > 0 ? stride_width : stride};
  }
  std::array<int64_t, 2> paddings() const {
    return {padding, padding_width >= 0 ? padding_width : padding};
  }
};

/// x [N, C, H, W], weight [O, C / G, kh, kw] as PyTorch's Conv2d, bias [O] or undefined ->
/// [N, O, H', W'] in channels-last memory, H' = (H + 2 padding - kh) / stride + 1 rounded down, W'
/// likewise.
/// x in another layout is copied. Throws c10::Error for shapes that do not fit.
///
/// In half precision (compute.h) x, weight and bias are rounded, and so are the result and the
/// gradients of x and weight, in fp32 storage. On a CPU the products are bf16 ones where the
/// processor has them (has_fast_bf16), and else fp32 ones of rounded numbers. fp64 is never
/// rounded.
at::Tensor convolution_2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          const PlaneWindow& window = {});

}  // namespace stretto::kernels
