#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "nn/conv2d.h"

/// Pooling of planes, [N, C, H, W] in channels-last memory.
namespace stretto::nn {

struct PoolWindow {
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
};

/// The largest number of each window, as PyTorch's max_pool2d.
at::Tensor max_pool(const at::Tensor& x, const PoolWindow& window);

/// The same with TensorFlow's padding "SAME": ceil(H / stride) rows come out, and where an odd
/// number of pixels is padded, the right and the lower border have one more.
at::Tensor max_pool_same(const at::Tensor& x, int64_t kernel, int64_t stride);

/// The mean, and the largest number, of each channel: -> [N, C].
at::Tensor mean_of_plane(const at::Tensor& x);
at::Tensor max_of_plane(const at::Tensor& x);

/// Height and width behind max_pool().
Extent pooled_extent(Extent in, const PoolWindow& window);

}  // namespace stretto::nn
