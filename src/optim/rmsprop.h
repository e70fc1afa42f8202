#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// RMSProp (Tieleman & Hinton 2012), as torch.optim.RMSprop has it, not centred, with alpha =
/// beta2:
///
///     d = gradient * grad_scale + weight_decay p
///     v = beta2 v + (1 - beta2) d^2
///     u = momentum u + d / (sqrt(v) + epsilon)
///     p = p - lr u
class Rmsprop : public Optimizer {
 public:
  Rmsprop(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor square_avg_, velocity_;
};

}  // namespace stretto::optim
