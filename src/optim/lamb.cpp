#include "optim/lamb.h"

#include <algorithm>
#include <cmath>

#include "kernels/optimizer/steps.h"
#include "optim/layer_norms.h"

namespace stretto::optim {

Lamb::Lamb(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      exp_avg_(layout_.zeros(arena)),
      exp_avg_sq_(layout_.zeros(arena)) {}

void Lamb::step(Arena& arena, const UpdateStep& update) {
  auto runs = layout_.block_runs<kernels::LambScalars>([&](const Part& part) {
    const GroupSettings& group = layout_.settings(part);
    const auto number = static_cast<double>(std::max<int64_t>(1, number_for(update, group)));
    const double correction1 = 1 - std::pow(options_.beta1, number);
    const double correction2 = 1 - std::pow(options_.beta2, number);
    return kernels::LambScalars{
        .first = kernels::moving_average(options_.beta1),
        .second = kernels::moving_average(options_.beta2),
        .grad = static_cast<float>(update.grad_scale),
        .inverse_correction = static_cast<float>(1 / correction1),
        .inverse_root_correction = static_cast<float>(1 / std::sqrt(correction2)),
        .epsilon = static_cast<float>(options_.epsilon),
        .decay = static_cast<float>(group.weight_decay),
        .rate = 0};
  });
  torch::Tensor params = layout_.part_of(arena.params());
  const auto sums = of_whole_tensors(
      layout_,
      kernels::lamb_moments(params, layout_.part_of(arena.grads()), exp_avg_, exp_avg_sq_, runs),
      update);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Part& part = layout_.blocks()[i];
    const GroupSettings& group = layout_.settings(part);
    const auto& [weight, step] = sums[part.slot];
    if (!steps(update, group)) continue;  // its rate stays 0
    const double trust =
        group.exempt || weight == 0 || step == 0 ? 1 : std::sqrt(weight) / std::sqrt(step);
    runs[i].numbers.rate = static_cast<float>(update.lr * group.lr_scale * trust);
  }
  kernels::lamb_apply(params, exp_avg_, exp_avg_sq_, runs);
}

std::vector<StateTensor> Lamb::state() {
  return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}};
}

}  // namespace stretto::optim
