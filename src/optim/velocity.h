#pragma once

#include "kernels/optimizer/step_numbers.h"
#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// The momentum of sgd, lars and larc, in the form that optim.momentum_form names. With a direction
/// d (the gradient, decayed and scaled by whoever asks):
///
///     rate_outside   u = momentum u + d                        p = p - lr u
///                    Nesterov:                                 p = p - lr (d + momentum u)
///     rate_inside    u = momentum (lr / lr_before) u + lr d    p = p - u
///                    Nesterov:                                 p = p - (lr d + momentum u)
///
/// The factor lr / lr_before is momentum correction (Goyal et al. 2017, arXiv:1706.02677, section
/// 2.1): it acts whenever the rate changes, in warm-up too, and makes the second form equal to the
/// first. It is 1 while the velocity is still zero, in the first update.
///
/// A rate of 0 is no unit for a velocity, and yet the first form gathers gradients under it. So
/// with r = lr, but in place of 0 the last rate that was not 0 (1 when there was none),
///
///     rate_inside    u = momentum (r / r_before) u + r d       p = p - (lr / r) u
///                    Nesterov:                                 p = p - (lr d + momentum (lr / r)
///                    u)
class Velocity {
 public:
  Velocity(const OptimOptions& options, const Layout& layout, const Arena& arena);

  /// Begins an update; remembers its rate, r of the formula above.
  void set_rate(double lr);
  /// Numbers of a run with d = grad g + decay p, whose rate is lr_scale times that of the update.
  kernels::MomentumScalars numbers(double grad, double decay, double lr_scale) const;

  torch::Tensor& values() { return velocity_; }
  /// "velocity", and with rate_inside "last_rate": r as the sum of two fp32 numbers, 0 before the
  /// first update.
  std::vector<StateTensor> state();

 private:
  const double momentum_;
  const bool nesterov_, inside_;
  double lr_ = 0;
  double unit_ = 1, correction_ = 1;  // rate_inside: r, and r / r_before
  torch::Tensor velocity_, last_rate_;
};

}  // namespace stretto::optim
