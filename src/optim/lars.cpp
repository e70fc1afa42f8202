#include "optim/lars.h"

#include <algorithm>
#include <cmath>

#include "kernels/optimizer/steps.h"
#include "optim/bounded_gradients.h"
#include "optim/layer_norms.h"

namespace stretto::optim {

Lars::Lars(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      decays_(options.name == "larc" &&
              std::any_of(layout_.settings().begin(), layout_.settings().end(),
                          [](const GroupSettings& one) { return one.weight_decay > 0; })),
      velocity_(options, layout_, arena) {}

double Lars::ratio(const GroupSettings& group, double lr, const Norms& norms) const {
  constexpr double kEpsilon = 1e-7, kSmallest = 1e-7;
  const auto& [weight, gradient, decayed] = norms;
  if (group.exempt || weight == 0 || gradient == 0) return 1;
  const double eta = options_.trust_coefficient;
  if (options_.name == "lars") return eta * weight / (gradient + group.weight_decay * weight);
  if (options_.larc_mode == "scale") {
    return std::max(eta * weight / (decayed + kEpsilon), kSmallest);
  }
  return larc_ratio(eta, lr, weight, decayed);
}

std::vector<Lars::Norms> Lars::norms_of(const torch::Tensor& params, const torch::Tensor& grads,
                                        const UpdateStep& update) const {
  const auto numbers = [&](double decay) {
    return kernels::NormScalars{.grad = static_cast<float>(update.grad_scale),
                                .decay = static_cast<float>(decay)};
  };
  // One reduction: of gradients as they are and, where that differs, of what larc divides by.
  auto runs = layout_.block_runs<kernels::NormScalars>([&](const Part&) { return numbers(0); });
  if (decays_) {
    const auto decayed = layout_.block_runs<kernels::NormScalars>(
        [&](const Part& part) { return numbers(layout_.settings(part).weight_decay); });
    runs.insert(runs.end(), decayed.begin(), decayed.end());
  }
  const auto sums = of_whole_tensors(layout_, kernels::squares_of_runs(params, grads, runs), update,
                                     decays_ ? 2 : 1);
  std::vector<Norms> norms;
  for (size_t slot = 0; slot < layout_.num_slots(); ++slot) {
    const size_t decayed = slot + (decays_ ? layout_.num_slots() : 0);
    norms.push_back({.weight = std::sqrt(sums[slot].weight),
                     .gradient = std::sqrt(sums[slot].update),
                     .decayed = std::sqrt(sums[decayed].update)});
  }
  return norms;
}

void Lars::step(Arena& arena, const UpdateStep& update) {
  torch::Tensor params = layout_.part_of(arena.params());
  const torch::Tensor grads = layout_.part_of(arena.grads());
  const auto norms = norms_of(params, grads, update);
  velocity_.set_rate(update.lr);
  const auto runs = layout_.tensor_runs<kernels::MomentumScalars>(update, [&](const Part& part) {
    const GroupSettings& group = layout_.settings(part);
    const double r = ratio(group, update.lr * group.lr_scale, norms[part.slot]);
    return velocity_.numbers(r * update.grad_scale, r * group.weight_decay, group.lr_scale);
  });
  kernels::momentum_runs(params, grads, velocity_.values(), runs);
}

}  // namespace stretto::optim
