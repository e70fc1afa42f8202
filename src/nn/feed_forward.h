#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "nn/linear.h"
#include "nn/packed_rows.h"

namespace stretto::nn {

/// "gelu", "gelu_tanh", "silu", "relu_squared", or "relu", as which any other name counts.
kernels::Activation activation_named(const std::string& name);

/// Position-wise feed-forward part (Vaswani et al. 2017, section 3.3); x [N, D] -> [N, D].
///
///     relu, relu_squared, gelu, gelu_tanh, silu:
///                down(dropout(activation(up(x))))       up [F, D], biases unless without
///     swiglu:    down(dropout(silu(gate(x)) * up(x)))   Shazeer 2020
///     geglu:     down(dropout(gelu(gate(x)) * up(x)))   (arXiv:2002.05202)
///
/// Gate and up are one matrix [2F, D], gate first, and have no biases, as in the paper.
class FeedForwardImpl : public torch::nn::Module {
 public:
  /// @param activation  "relu", "relu_squared", "gelu" (exact), "gelu_tanh", "silu", "swiglu" or
  ///                    "geglu"
  /// @param bias        whether ungated parts have biases
  FeedForwardImpl(const Init& init, int64_t d_model, int64_t ffn_dim, const std::string& activation,
                  bool bias = true);
  at::Tensor forward(const at::Tensor& x, const kernels::Dropout& dropout) const;

  Linear up{nullptr}, down{nullptr};

 private:
  at::Tensor gated(const at::Tensor& inner, const kernels::Dropout& dropout) const;

  bool gated_;
  kernels::Activation activation_;  ///< of gated ones kGelu: geglu, else swiglu
};
TORCH_MODULE(FeedForward);

}  // namespace stretto::nn
