#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Rectified Adam (Liu et al. 2020, arXiv:1908.03265), as torch.optim.RAdam with
/// decoupled_weight_decay has it. Moments are Adam's; with
///
///     rho_inf = 2 / (1 - beta2) - 1,   rho = rho_inf - 2 t beta2^t / (1 - beta2^t)
///
///     p = p (1 - lr weight_decay)
///     rho > 5:  p = p - lr r sqrt(1 - beta2^t) m / (1 - beta1^t) / (sqrt(v) + epsilon),
///               r = sqrt((rho - 4)(rho - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho))
///     before:   p = p - lr m / (1 - beta1^t)          (optim.radam_start = "momentum")
///               p stays, decay included               ("none")
class Radam : public Optimizer {
 public:
  Radam(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

  /// The factor r above of update `number`, or 0 before the variance can be trusted.
  static double rectification(double beta2, int64_t number);

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace stretto::optim
