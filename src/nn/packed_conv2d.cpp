#include "nn/packed_conv2d.h"

#include <ATen/ATen.h>

#include <cmath>

#include "nn/watch.h"

namespace stretto::nn {

PackedConv2dImpl::PackedConv2dImpl(const Init& init, int64_t in, int64_t out,
                                   const PackedConv2dOptions& options)
    : options_(options) {
  const int64_t taps = options.time_kernel * options.column_kernel;
  const double stddev = std::sqrt(2 / static_cast<double>(taps * (in + out)));
  const at::Tensor drawn = init.normal("weight", out, in * taps, stddev);
  weight = register_parameter("weight",
                              drawn.view({out, in, options.time_kernel, options.column_kernel}));
}

at::Tensor PackedConv2dImpl::forward(const at::Tensor& x, const kernels::Offsets& offsets) const {
  return watch(*this, forward_by(weight, x, offsets));
}

at::Tensor PackedConv2dImpl::forward_by(const at::Tensor& filters, const at::Tensor& x,
                                        const kernels::Offsets& offsets) const {
  return kernels::packed_convolution_2d(x, filters,
                                        {.offsets = offsets,
                                         .columns = x.size(1) / weight.size(1),
                                         .time_stride = options_.time_stride,
                                         .column_stride = options_.column_stride});
}

}  // namespace stretto::nn
