#include "optim/adam.h"

#include <cmath>

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Adam::Adam(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      exp_avg_(layout_.zeros(arena)),
      exp_avg_sq_(layout_.zeros(arena)) {}

kernels::AdamScalars Adam::numbers(const UpdateStep& update, const GroupSettings& group) const {
  const bool decoupled = options_.name == "adamw";
  const auto number = static_cast<double>(number_for(update, group));
  const double correction1 = 1 - std::pow(options_.beta1, number);
  const double correction2 = 1 - std::pow(options_.beta2, number);
  const double lr = update.lr * group.lr_scale, decay = group.weight_decay;
  return {.first = kernels::moving_average(options_.beta1),
          .second = kernels::moving_average(options_.beta2),
          .grad_scale = static_cast<float>(update.grad_scale),
          .coupled_decay = decoupled ? 0.0f : static_cast<float>(decay),
          .shrink = decoupled ? static_cast<float>(1 - lr * decay) : 1.0f,
          .step_size = static_cast<float>(lr / correction1),
          .inverse_root_correction = static_cast<float>(1 / std::sqrt(correction2)),
          .epsilon = static_cast<float>(options_.epsilon)};
}

void Adam::step_runs(Arena& arena, std::span<const kernels::Run<kernels::AdamScalars>> runs) {
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::adam_runs(params, layout_.part_of(arena.grads()), exp_avg_, exp_avg_sq_, runs);
}

void Adam::step(Arena& arena, const UpdateStep& update) {
  step_runs(arena, layout_.runs<kernels::AdamScalars>(
                       update, [&](const GroupSettings& group) { return numbers(update, group); }));
}

std::vector<StateTensor> Adam::state() {
  return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}};
}

}  // namespace stretto::optim
