#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "nn/linear.h"
#include "nn/packed_rows.h"

namespace stretto::nn {

/// Position-wise feed-forward part (Vaswani et al. 2017, section 3.3); x [N, D] -> [N, D].
///
///     relu, gelu:  down(dropout(activation(up(x))))           up [F, D], with biases
///     swiglu:      down(dropout(silu(gate(x)) * up(x)))       Shazeer 2020, arXiv:2002.05202
///
/// SwiGLU's gate and up are one matrix [2F, D], gate first, and have no biases, as in the paper.
class FeedForwardImpl : public torch::nn::Module {
 public:
  /// @param activation  "relu", "gelu" (exact) or "swiglu"
  FeedForwardImpl(const Init& init, int64_t d_model, int64_t ffn_dim,
                  const std::string& activation);
  at::Tensor forward(const at::Tensor& x, const kernels::Dropout& dropout) const;

  Linear up{nullptr}, down{nullptr};

 private:
  bool gated_;
  kernels::Activation activation_;
};
TORCH_MODULE(FeedForward);

}  // namespace stretto::nn
