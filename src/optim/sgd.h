#pragma once

#include "optim/optimizer.h"

namespace stretto::optim {

/// Stochastic gradient descent with momentum as torch.optim.SGD has it (velocity without the
/// learning rate inside, no dampening):
///
///     g = gradient * grad_scale + weight_decay p       (weight decay on matrices only)
///     u = momentum u + g
///     p = p - lr u            or, Nesterov,   p = p - lr (g + momentum u)
class Sgd : public Optimizer {
 public:
  Sgd(const OptimOptions& options, const Arena& arena);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<std::pair<std::string, torch::Tensor>> state() override;

 private:
  const OptimOptions options_;
  torch::Tensor velocity_;
};

}  // namespace stretto::optim
