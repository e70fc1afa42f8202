#pragma once

#include <span>

#include "kernels/optimizer/step_numbers.h"
#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Adam (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1) and AdamW (Loshchilov & Hutter 2019,
/// arXiv:1711.05101, decoupled weight decay), as torch.optim has them:
///
///     g = gradient * grad_scale               (+ weight_decay * p   for `adam`)
///     m = beta1 m + (1 - beta1) g             v = beta2 v + (1 - beta2) g^2
///     p = p (1 - lr weight_decay)             (for `adamw`)
///     p = p - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
class Adam : public Optimizer {
 public:
  Adam(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

 protected:
  /// @param second_moments  the elements that have v, and may be stepped
  Adam(const OptimOptions& options, const Arena& arena, Slice slice, HeldElements second_moments);

  torch::Tensor& exp_avg() { return exp_avg_; }
  /// What an update does to tensors of these settings.
  kernels::AdamScalars numbers(const UpdateStep& update, const GroupSettings& group) const;
  /// None of the runs may go beyond a stretch of second moments.
  void step_runs(Arena& arena, std::span<const kernels::Run<kernels::AdamScalars>> runs);

  const OptimOptions options_;
  const Layout layout_;

 private:
  void step_stretch(Arena& arena, Slice part,
                    std::span<const kernels::Run<kernels::AdamScalars>> runs);

  const HeldElements second_moments_;
  torch::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace stretto::optim
