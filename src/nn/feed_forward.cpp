#include "nn/feed_forward.h"

#include "nn/watch.h"

namespace stretto::nn {

FeedForwardImpl::FeedForwardImpl(const Init& init, int64_t d_model, int64_t ffn_dim,
                                 const std::string& activation)
    : gated_(activation == "swiglu"),
      activation_(activation == "gelu" ? kernels::Activation::kGelu : kernels::Activation::kRelu) {
  const int64_t parts = gated_ ? 2 : 1;
  up = register_module("up", Linear(init.child("up"), d_model, parts * ffn_dim,
                                    LinearOptions{.parts = parts, .bias = !gated_}));
  down = register_module(
      "down", Linear(init.child("down"), ffn_dim, d_model, LinearOptions{.bias = !gated_}));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, const kernels::Dropout& dropout) const {
  // The bias of `up` joins the activation in one pass over [N, F].
  const at::Tensor inner = watch(*up, up->product(x));
  const at::Tensor active =
      gated_ ? kernels::swiglu_dropout(inner, dropout)
             : kernels::bias_activation_dropout(inner, up->bias, activation_, dropout);
  return down->forward(watch(*this, active));
}

}  // namespace stretto::nn
