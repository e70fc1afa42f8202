#include "nn/packed_conv2d.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "kernels/gemm/packed_weights.h"
#include "nn/conv1d.h"
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
  return watch(*this, forward_by(weight, {}, x, offsets));
}

at::Tensor PackedConv2dImpl::forward_by(const at::Tensor& filters, const at::Tensor& shift,
                                        const at::Tensor& x,
                                        const kernels::Offsets& offsets) const {
  return kernels::packed_convolution_2d(x, filters, shift,
                                        {.offsets = offsets,
                                         .columns = x.size(1) / weight.size(1),
                                         .time_stride = options_.time_stride,
                                         .column_stride = options_.column_stride});
}

at::Tensor convolved_rows(const at::Tensor& x, const kernels::Offsets& offsets,
                          const PackedConv2d& conv, const BatchNorm& norm, kernels::PlaneEnd end) {
  if (at::GradMode::is_enabled() || !norm->goes_by_running()) {
    return normed_rows(conv->forward(x, offsets), norm, {.end = end});
  }
  const BatchNormImpl::Map map = norm->running_map();
  const auto normed = [&] { return conv->weight * map.scale.view({-1, 1, 1, 1}); };
  auto* kept = kernels::PackedWeightsScope::current();
  at::Tensor y = conv->forward_by(kept != nullptr ? kept->made_of(conv->weight, normed) : normed(),
                                  map.shift, x, offsets);
  return watch(*norm, kernels::bent_plane(std::move(y), end));
}

}  // namespace stretto::nn
