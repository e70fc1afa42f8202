#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2 with phi(z) = z): Adam's step, scaled for
/// each tensor to its norm. g is gradient * grad_scale.
///
///     m = beta1 m + (1 - beta1) g             v = beta2 v + (1 - beta2) g^2
///     r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p
///     p = p - lr (|p| / |r|) r
///
/// The ratio |p| / |r| is 1 where either norm is 0 and for the no-decay group.
class Lamb : public Optimizer {
 public:
  Lamb(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace stretto::optim
