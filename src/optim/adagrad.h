#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Adagrad (Duchi et al. 2011), as torch.optim.Adagrad has it without lr_decay:
///
///     d = gradient * grad_scale + weight_decay p
///     sum = sum + d^2
///     p = p - lr d / (sqrt(sum) + epsilon)
class Adagrad : public Optimizer {
 public:
  Adagrad(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override { return {{"sum", sum_}}; }

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor sum_;
};

}  // namespace stretto::optim
