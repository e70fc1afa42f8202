#include "optim/velocity.h"

namespace stretto::optim {
namespace {

// A velocity times a smaller rate would leave the range of fp32: such a rate is no unit either.
constexpr double kLeastUnit = 1e-20;

}  // namespace

Velocity::Velocity(const OptimOptions& options, const Layout& layout, const Arena& arena)
    : momentum_(options.momentum),
      nesterov_(options.nesterov),
      inside_(options.momentum_form == "rate_inside"),
      velocity_(layout.zeros(arena)),
      last_rate_(torch::zeros({2}, torch::kFloat)) {}

void Velocity::set_rate(double lr) {
  lr_ = lr;
  if (!inside_) return;
  float* last = last_rate_.data_ptr<float>();
  const double before = static_cast<double>(last[0]) + static_cast<double>(last[1]);
  unit_ = lr >= kLeastUnit ? lr : before > 0 ? before : 1;
  correction_ = before > 0 ? unit_ / before : 1;
  last[0] = static_cast<float>(unit_);
  last[1] = static_cast<float>(unit_ - static_cast<double>(last[0]));
}

kernels::MomentumScalars Velocity::numbers(double grad, double decay, double lr_scale) const {
  const double lr = lr_ * lr_scale;
  const double step = inside_ ? lr_ / unit_ : lr;
  return {.grad = static_cast<float>(grad),
          .decay = static_cast<float>(decay),
          .carry = static_cast<float>(inside_ ? momentum_ * correction_ : momentum_),
          .gain = static_cast<float>(inside_ ? unit_ * lr_scale : 1),
          .ahead = static_cast<float>(nesterov_ ? lr : 0),
          .look = static_cast<float>(nesterov_ ? step * momentum_ : step)};
}

std::vector<StateTensor> Velocity::state() {
  std::vector<StateTensor> tensors{{"velocity", velocity_}};
  if (inside_) tensors.push_back({"last_rate", last_rate_, false});
  return tensors;
}

}  // namespace stretto::optim
