#pragma once

#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches", algorithm
/// 1) in TensorFlow's parametrisation, with its learning_rate_power of -0.5. With n_0 =
/// initial_accumulator and z_0 = 0:
///
///     d = gradient * grad_scale + weight_decay p
///     n = n + d^2                                  S = sqrt(n) / lr
///     z = z + d - (S - S_before) p
///     p = 0 where |z| <= l1, else -(z - sign(z) l1) / (S + 2 l2)
///
/// S is the sum of the strengths that hold p near the weights of all updates so far. S_before is
/// that of the update before, with the rate that the update before had: while the rate stays, this
/// is TensorFlow's rule. TensorFlow takes the new rate on both sides, so that under a warm-up all
/// weights would grow or shrink with the rate; here a changed rate moves nothing by itself.
///
/// Before the first update S_before is 0 (optim.ftrl_start = "weights"), and without l1 and l2 the
/// rule is Adagrad's; or sqrt(n_0) / lr ("zero"), as in TensorFlow: then n_0 belongs to a pull
/// towards zero, which takes the share sqrt(n_0 / n) of the first weights away.
///
/// An update whose rate is 0 moves nothing, and neither does a tensor with a group's lr_scale = 0.
/// Tensors that optim.no_decay covers have neither l1 nor l2.
class Ftrl : public Optimizer {
 public:
  Ftrl(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  /// "sum", which is n - n_0, "linear", which is z, and "last_rate": the rate of the update before
  /// as the sum of two fp32 numbers, 0 before the first.
  std::vector<StateTensor> state() override;

 private:
  const OptimOptions options_;
  const Layout layout_;
  torch::Tensor sum_, linear_, last_rate_;
};

}  // namespace stretto::optim
