#include "nn/norm.h"

#include <ATen/ops/zeros_like.h>

#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {

NormImpl::NormImpl(const Init& init, int64_t channels, bool zero_gamma, Bias beta) {
  weight = register_parameter("weight", init.constant("weight", channels, zero_gamma ? 0.0 : 1.0));
  if (beta == Bias::kLearned) {
    bias = register_parameter("bias", init.constant("bias", channels, 0.0));
  }
}

LayerNormImpl::LayerNormImpl(const Init& init, int64_t d_model, bool zero_gamma, double epsilon,
                             bool has_bias)
    : NormImpl(init, d_model, zero_gamma, has_bias ? Bias::kLearned : Bias::kNone),
      epsilon_(epsilon) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) const {
  const at::Tensor shift = bias.defined() ? bias : at::zeros_like(weight);
  return watch(*this, kernels::layer_norm(x, weight, shift, epsilon_));
}

RmsNormImpl::RmsNormImpl(const Init& init, int64_t d_model, bool zero_gamma, double epsilon)
    : NormImpl(init, d_model, zero_gamma, Bias::kNone), epsilon_(epsilon) {}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) const {
  return watch(*this, kernels::rms_norm(x, weight, epsilon_));
}

}  // namespace stretto::nn
