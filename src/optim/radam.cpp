#include "optim/radam.h"

#include <cmath>

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Radam::Radam(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      exp_avg_(layout_.zeros(arena)),
      exp_avg_sq_(layout_.zeros(arena)) {}

double Radam::rectification(double beta2, int64_t number) {
  const double t = static_cast<double>(number), power = std::pow(beta2, t);
  const double limit = 2 / (1 - beta2) - 1, rho = limit - 2 * t * power / (1 - power);
  if (rho <= 5) return 0;
  return std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
}

void Radam::step(Arena& arena, const UpdateStep& update) {
  const auto runs = layout_.runs<kernels::AdamScalars>(update, [&](const GroupSettings& group) {
    const int64_t number = number_for(update, group);
    const double t = static_cast<double>(number);
    const double correction1 = 1 - std::pow(options_.beta1, t);
    const double correction2 = 1 - std::pow(options_.beta2, t);
    const double rectified = rectification(options_.beta2, number);
    const bool waits = rectified == 0 && options_.radam_start == "none";
    // Adam's pass serves: epsilon is not divided by the correction here, so it is multiplied by
    // its inverse, and a divisor of 1 leaves plain momentum.
    const double root = rectified > 0 ? 1 / std::sqrt(correction2) : 0;
    const double epsilon = rectified > 0 ? options_.epsilon * root : 1;
    const double lr = update.lr * group.lr_scale;
    const double size = waits ? 0 : lr / correction1 * (rectified > 0 ? rectified : 1);
    return kernels::AdamScalars{
        .first = kernels::moving_average(options_.beta1),
        .second = kernels::moving_average(options_.beta2),
        .grad_scale = static_cast<float>(update.grad_scale),
        .coupled_decay = 0,
        .shrink = waits ? 1.0f : static_cast<float>(1 - lr * group.weight_decay),
        .step_size = static_cast<float>(size),
        .inverse_root_correction = static_cast<float>(root),
        .epsilon = static_cast<float>(epsilon)};
  });
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::adam_runs(params, layout_.part_of(arena.grads()), exp_avg_, exp_avg_sq_, runs);
}

std::vector<StateTensor> Radam::state() {
  return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}};
}

}  // namespace stretto::optim
