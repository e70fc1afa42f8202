#include "nn/feed_forward.h"

#include <ATen/ops/zeros.h>

#include "nn/watch.h"

namespace stretto::nn {

kernels::Activation activation_named(const std::string& name) {
  if (name == "gelu") return kernels::Activation::kGelu;
  if (name == "silu") return kernels::Activation::kSilu;
  if (name == "relu_squared") return kernels::Activation::kReluSquared;
  return name == "gelu_tanh" ? kernels::Activation::kGeluTanh : kernels::Activation::kRelu;
}

FeedForwardImpl::FeedForwardImpl(const Init& init, int64_t d_model, int64_t ffn_dim,
                                 const std::string& activation, bool bias)
    : gated_(activation == "swiglu" || activation == "geglu"),
      activation_(activation == "geglu" ? kernels::Activation::kGelu
                                        : activation_named(activation)) {
  const int64_t parts = gated_ ? 2 : 1;
  const bool biased = bias && !gated_;
  up = register_module("up", Linear(init.child("up"), d_model, parts * ffn_dim,
                                    LinearOptions{.parts = parts, .bias = biased}));
  down = register_module("down", Linear(init.child("down").of_residual(), ffn_dim, d_model,
                                        LinearOptions{.bias = biased}));
}

at::Tensor FeedForwardImpl::gated(const at::Tensor& inner, const kernels::Dropout& dropout) const {
  return activation_ == kernels::Activation::kGelu ? kernels::geglu_dropout(inner, dropout)
                                                   : kernels::swiglu_dropout(inner, dropout);
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, const kernels::Dropout& dropout) const {
  // The bias of `up` joins the activation in one pass over [N, F].
  // Operators that a GPU has no kernel for take fp32 rows.
  const bool fused = gated_ || (activation_ != kernels::Activation::kSilu &&
                                activation_ != kernels::Activation::kReluSquared);
  const at::Tensor inner =
      watch(*up, up->product(x, fused ? kernels::Storage::kRounded : kernels::Storage::kFp32));
  const auto shift = [&] {
    return up->bias.defined() ? up->bias : at::zeros({inner.size(1)}, up->weight.options());
  };
  const at::Tensor active =
      gated_ ? gated(inner, dropout)
             : kernels::bias_activation_dropout(inner, shift(), activation_, dropout);
  return down->forward(watch(*this, active), kernels::Storage::kRounded);
}

}  // namespace stretto::nn
