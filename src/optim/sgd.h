#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"
#include "optim/velocity.h"

namespace stretto::optim {

/// Stochastic gradient descent with momentum (velocity.h), no dampening, as torch.optim.SGD has it
/// when momentum_form is rate_outside. The direction is
///
///     d = gradient * grad_scale + weight_decay p
class Sgd : public Optimizer {
 public:
  Sgd(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override { return velocity_.state(); }

 private:
  const Layout layout_;
  Velocity velocity_;
};

}  // namespace stretto::optim
