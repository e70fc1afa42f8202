#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as OpenSeq2Seq has it: gradients are divided
/// by a moving norm of their tensor. g is gradient * grad_scale.
///
///     v = |g|^2 at first, then beta2 v + (1 - beta2) |g|^2       one number a tensor
///     d = g / sqrt(v + epsilon) + weight_decay p
///     u = beta1 u + d          (1 - beta1) d with optim.grad_averaging
///     p = p - lr u
///
/// Its usual numbers are beta1 0.95, beta2 0.98, epsilon 1e-8. Every process that steps a slice
/// keeps all of v.
class Novograd : public Optimizer {
 public:
  Novograd(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor velocity_;
  torch::Tensor norm_sq_;  // [slots], on the CPU
};

}  // namespace stretto::optim
