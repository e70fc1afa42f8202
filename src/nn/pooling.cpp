#include "nn/pooling.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

namespace stretto::nn {
namespace {

/// Pixels that "SAME" pads a side of so many pixels with, both ends together.
int64_t padding_of_same(int64_t size, int64_t kernel, int64_t stride) {
  const int64_t out = (size + stride - 1) / stride;
  return std::max<int64_t>((out - 1) * stride + kernel - size, 0);
}

}  // namespace

at::Tensor max_pool(const at::Tensor& x, const PoolWindow& window) {
  return at::max_pool2d(x, {window.kernel, window.kernel}, {window.stride, window.stride},
                        {window.padding, window.padding});
}

at::Tensor max_pool_same(const at::Tensor& x, int64_t kernel, int64_t stride) {
  const int64_t rows = padding_of_same(x.size(2), kernel, stride);
  const int64_t columns = padding_of_same(x.size(3), kernel, stride);
  // An odd pixel is that of a last window which ends beyond the border: of ceil_mode.
  return at::max_pool2d(x, {kernel, kernel}, {stride, stride}, {rows / 2, columns / 2}, {1, 1},
                        /*ceil_mode=*/true);
}

at::Tensor mean_of_plane(const at::Tensor& x) {
  return x.mean({2, 3});
}

at::Tensor max_of_plane(const at::Tensor& x) {
  // Not amax(), which shares the gradient among equal numbers.
  return std::get<0>(at::adaptive_max_pool2d(x, {1, 1})).flatten(1);
}

Extent pooled_extent(Extent in, const PoolWindow& window) {
  const auto side = [&](int64_t size) {
    const int64_t left = size + 2 * window.padding - window.kernel;
    return left < 0 ? 0 : left / window.stride + 1;
  };
  return {side(in.height), side(in.width)};
}

}  // namespace stretto::nn
