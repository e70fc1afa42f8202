#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"
#include "optim/velocity.h"

namespace stretto::optim {

/// A learning rate for each tensor, in proportion to its norm: the direction of sgd's momentum
/// (velocity.h) is multiplied by a ratio r. g is gradient * grad_scale, eta is trust_coefficient.
///
///     lars   (You et al. 2017, arXiv:1708.03888, algorithm 1)
///            d = r (g + weight_decay p),   r = eta |p| / (|g| + weight_decay |p|)
///     larc   (as OpenSeq2Seq has it) with h = g + weight_decay p,   d = r h
///            clip    r = min(1, max(eta |p| / (lr (|h| + 1e-7)), 1e-7))
///            scale   r = max(eta |p| / (|h| + 1e-7), 1e-7)
///
/// r is 1 for the no-decay group, and where |p| or |g| is 0: otherwise a tensor that begins at zero
/// would never move.
class Lars : public Optimizer {
 public:
  Lars(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override { return velocity_.state(); }

 private:
  /// The norms of one tensor: |p|, |g|, and |h| of larc.
  struct Norms {
    double weight = 0, gradient = 0, decayed = 0;
  };
  std::vector<Norms> norms_of(const torch::Tensor& params, const torch::Tensor& grads,
                              const UpdateStep& update) const;
  double ratio(const GroupSettings& group, double lr, const Norms& norms) const;

  const OptimOptions options_;
  const Layout layout_;
  const bool decays_;  ///< |h| is not |g|
  Velocity velocity_;
};

}  // namespace stretto::optim
