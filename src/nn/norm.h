#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "nn/init.h"

namespace stretto::nn {

/// Layer normalisation (Ba et al. 2016, arXiv:1607.06450): (x - mean) / sqrt(var + 1e-5) * weight +
/// bias over the last dimension; x [N, D], weight [D] starts at one, bias [D] at zero.
class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(const Init& init, int64_t d_model);
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

}  // namespace stretto::nn
