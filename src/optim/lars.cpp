#include "optim/lars.h"

#include <algorithm>
#include <cmath>

#include "kernels/optimizer_steps.h"
#include "optim/layer_norms.h"

namespace stretto::optim {

Lars::Lars(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options), layout_(options, arena, slice), velocity_(options, layout_, arena) {}

double Lars::ratio(const GroupSettings& group, double lr, double weight, double gradient) const {
  constexpr double kEpsilon = 1e-7, kSmallest = 1e-7;
  if (group.exempt || weight == 0 || gradient == 0) return 1;
  const double eta = options_.trust_coefficient;
  if (options_.name == "lars") return eta * weight / (gradient + group.weight_decay * weight);
  if (options_.larc_mode == "scale") {
    return std::max(eta * weight / (gradient + kEpsilon), kSmallest);
  }
  // At a rate of 0 any ratio does.
  return lr == 0 ? 1 : std::clamp(eta * weight / (lr * (gradient + kEpsilon)), kSmallest, 1.0);
}

void Lars::step(Arena& arena, const UpdateStep& update) {
  torch::Tensor params = layout_.part_of(arena.params());
  const torch::Tensor grads = layout_.part_of(arena.grads());
  const bool decayed_norm = options_.name == "larc";
  const auto norm_runs = layout_.tensor_runs<kernels::NormScalars>([&](const Part& part) {
    const double decay = decayed_norm ? layout_.settings(part).weight_decay : 0;
    return kernels::NormScalars{.grad = static_cast<float>(update.grad_scale),
                                .decay = static_cast<float>(decay)};
  });
  const auto sums =
      of_whole_tensors(layout_, kernels::squares_of_runs(params, grads, norm_runs), update);
  velocity_.set_rate(update.lr);
  const auto runs = layout_.tensor_runs<kernels::MomentumScalars>([&](const Part& part) {
    const GroupSettings& group = layout_.settings(part);
    const double r = ratio(group, update.lr * group.lr_scale, std::sqrt(sums[part.slot].weight),
                           std::sqrt(sums[part.slot].update));
    return velocity_.numbers(r * update.grad_scale, r * group.weight_decay, group.lr_scale);
  });
  kernels::momentum_runs(params, grads, velocity_.values(), runs);
}

}  // namespace stretto::optim
