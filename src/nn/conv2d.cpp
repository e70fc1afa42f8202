#include "nn/conv2d.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "kernels/gemm/packed_weights.h"
#include "nn/watch.h"

namespace stretto::nn {

InitRule he_fan_out(int64_t out, int64_t kernel) {
  const auto fan_out = static_cast<double>(out * kernel * kernel);
  return {.distribution = Distribution::kNormal, .number = std::sqrt(2.0 / fan_out)};
}

Conv2dImpl::Conv2dImpl(const Init& init, int64_t in, int64_t out, const Conv2dOptions& options)
    : options_(options) {
  const int64_t k = options.kernel, inputs = in / options.groups;
  const at::Tensor drawn = init.matrix("weight", out, inputs * k * k, options.rule);
  weight = register_parameter("weight", drawn.view({out, inputs, k, k}));
  if (options.bias) bias = register_parameter("bias", init.constant("bias", out, 0.0));
}

at::Tensor Conv2dImpl::forward(const at::Tensor& x) const {
  return watch(*this, kernels::convolution_2d(x, weight, bias,
                                              {.stride = options_.stride,
                                               .padding = options_.padding,
                                               .groups = options_.groups}));
}

Extent Conv2dImpl::out_of(Extent in) const {
  const auto side = [&](int64_t size) {
    const int64_t left = size + 2 * options_.padding - options_.kernel;
    return left < 0 ? 0 : left / options_.stride + 1;
  };
  return {side(in.height), side(in.width)};
}

double Conv2dImpl::operations(Extent in) const {
  const Extent out = out_of(in);
  return 2 * static_cast<double>(weight.numel()) * static_cast<double>(out.height * out.width);
}

at::Tensor convolved(const at::Tensor& x, const Conv2d& conv, const BatchNorm& norm,
                     const NormEnd& end) {
  if (at::GradMode::is_enabled() || !norm->goes_by_running()) {
    return norm->forward_to(end, conv->forward(x));
  }
  const BatchNormImpl::Map map = norm->running_map();
  const at::Tensor bias = conv->bias.defined() ? conv->bias * map.scale + map.shift : map.shift;
  const Conv2dOptions& o = conv->options();
  const auto normed = [&] {
    return (conv->weight * map.scale.view({-1, 1, 1, 1}))
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  // An evaluation of many batches makes the filters once.
  auto* kept = kernels::PackedWeightsScope::current();
  at::Tensor y =
      kernels::convolution_2d(x, kept != nullptr ? kept->made_of(conv->weight, normed) : normed(),
                              bias, {.stride = o.stride, .padding = o.padding, .groups = o.groups});
  if (end.residual.defined()) y = y.add_(end.residual);
  return watch(*norm, kernels::bent_plane(std::move(y), end.end));
}

}  // namespace stretto::nn
