#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "nn/init.h"

namespace stretto::nn {

/// What a model normalises rows by; x [N, D] -> [N, D].
class NormImpl : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) const = 0;

  at::Tensor weight, bias;  ///< gamma and beta, [D]; beta is undefined where a norm has none

 protected:
  enum class Bias : uint8_t { kLearned, kNone };

  /// gamma starts at one, or at zero: for the last norm of a residual block, which is then the
  /// identity at first (Goyal et al. 2017, arXiv:1706.02677, section 5.1). beta starts at zero.
  NormImpl(const Init& init, int64_t channels, bool zero_gamma, Bias beta = Bias::kLearned);
};
TORCH_MODULE(Norm);

/// Layer normalisation (Ba et al. 2016, arXiv:1607.06450): (x - mean) / sqrt(var + epsilon) *
/// weight + bias over the last dimension; x [N, D]. It may have no bias.
class LayerNormImpl : public NormImpl {
 public:
  LayerNormImpl(const Init& init, int64_t d_model, bool zero_gamma = false, double epsilon = 1e-5,
                bool has_bias = true);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  double epsilon_;
};
TORCH_MODULE(LayerNorm);

/// Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467): x / sqrt(mean(x^2) +
/// epsilon) * weight over the last dimension, without a mean and without a bias; x [N, D].
class RmsNormImpl : public NormImpl {
 public:
  RmsNormImpl(const Init& init, int64_t d_model, bool zero_gamma = false, double epsilon = 1e-6);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  double epsilon_;
};
TORCH_MODULE(RmsNorm);

}  // namespace stretto::nn
