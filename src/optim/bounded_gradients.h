#pragma once

#include <memory>
#include <vector>

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// `optim.larc_eta`: another rule's gradients, bounded for each tensor by the norm of its weight,
/// as OpenSeq2Seq puts LARC in front of any optimizer. Before a step the gradient of each tensor is
/// multiplied by
///
///     r = clamp(eta |p| / (lr (|g| + 1e-7)), 1e-7, 1)      g = gradient * grad_scale
///
/// with the tensor's own rate, and without the weight decay that the rule may add. r is 1 where |p|
/// or |g| is 0, at a rate of 0, and for the no-decay group. With SGD it is `larc` (optim/lars.h).
class BoundedGradients : public Optimizer {
 public:
  BoundedGradients(const OptimOptions& options, const Arena& arena, Slice slice,
                   std::unique_ptr<Optimizer> rule);
  /// Changes the gradients of the slice.
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override { return rule_->state(); }

 private:
  const double eta_;
  const Layout layout_;
  std::unique_ptr<Optimizer> rule_;
};

/// The factor r above. @param lr  of the tensor; `weight`, `gradient`: norms
double larc_ratio(double eta, double lr, double weight, double gradient);

}  // namespace stretto::optim
