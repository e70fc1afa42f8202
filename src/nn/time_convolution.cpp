#include "nn/time_convolution.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <utility>

#include "kernels/gemm/packed_weights.h"
#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

/// In double, since the order in which a processor sums must not show in a first weight.
at::Tensor lengths_of_rows(const at::Tensor& weight) {
  return weight.to(at::kDouble).square().sum(1).sqrt().to(weight.scalar_type());
}

}  // namespace

TimeConvolutionImpl::TimeConvolutionImpl(const Init& init, int64_t in, int64_t out,
                                         const TimeConvolutionOptions& options)
    : options_(options) {
  const int64_t width = options.kernel * in;
  const double stddev = std::sqrt(options.gain / static_cast<double>(width));
  weight = register_parameter("weight", init.normal("weight", out, width, stddev));
  if (options.weight_norm) {
    const at::NoGradGuard no_grad;
    gain = register_parameter("gain", init.vector("gain", lengths_of_rows(weight.detach())));
  }
  bias = register_parameter("bias", init.constant("bias", out, 0.0));
  if (auto options_here = init.lora()) {
    const MergedMap whole{.in = width, .rows = {out}};
    lora = std::make_unique<Lora>(*this, init, std::move(options_here), whole);
  }
}

TimeConvolutionWeights TimeConvolutionImpl::effective() const {
  if (!gain.defined() && !lora) return {.weight = weight, .bias = bias};
  const auto made = [&] {
    const at::Tensor rows = lora ? lora->merged(weight) : weight;
    return gain.defined() ? kernels::weight_norm(rows, gain) : rows;
  };
  kernels::PackedWeights* kept =
      at::GradMode::is_enabled() ? nullptr : kernels::PackedWeightsScope::current();
  return {.weight = kept != nullptr ? kept->made_of(weight, made) : made(), .bias = bias};
}

at::Tensor TimeConvolutionImpl::forward(const at::Tensor& x,
                                        const TimeConvolutionWeights& weights) const {
  TORCH_CHECK(options_.kernel == 1, "[nn] a convolution with ", options_.kernel,
              " taps is no linear map: call kernels::time_convolution");
  return watch(*this, kernels::linear(x, weights.weight, weights.bias));
}

}  // namespace stretto::nn
