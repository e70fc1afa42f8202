#include "optim/adam.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Adam::Adam(const OptimOptions& options, const Arena& arena, Slice slice)
    : Adam(options, arena, slice, HeldElements()) {}

Adam::Adam(const OptimOptions& options, const Arena& arena, Slice slice,
           HeldElements second_moments)
    : options_(options),
      layout_(options, arena, slice),
      second_moments_(std::move(second_moments)),
      exp_avg_(layout_.zeros(arena)),
      exp_avg_sq_(
          torch::zeros({second_moments_.place_of(slice).size()}, arena.params().options())) {}

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
  if (second_moments_.is_all()) return step_stretch(arena, layout_.slice(), runs);
  const Slice mine = layout_.slice();
  for (const Slice& stretch : second_moments_.stretches()) {
    const Slice part{std::max(stretch.begin, mine.begin), std::min(stretch.end, mine.end)};
    const int64_t first = part.begin - mine.begin, last = part.end - mine.begin;
    std::vector<kernels::Run<kernels::AdamScalars>> own;
    for (const auto& run : runs) {
      if (run.begin < first || run.end > last) continue;
      own.push_back({run.begin - first, run.end - first, run.numbers});
    }
    if (!own.empty()) step_stretch(arena, part, own);
  }
}

/// @param part  of the slice, all of which has second moments
/// @param runs  counted from its begin
void Adam::step_stretch(Arena& arena, Slice part,
                        std::span<const kernels::Run<kernels::AdamScalars>> runs) {
  const int64_t mine = layout_.slice().begin, size = part.size();
  const int64_t place = second_moments_.place_of({mine, part.begin}).size();
  torch::Tensor params = arena.params().narrow(0, part.begin, size);
  torch::Tensor first = exp_avg_.narrow(0, part.begin - mine, size);
  torch::Tensor second = exp_avg_sq_.narrow(0, place, size);
  kernels::adam_runs(params, arena.grads().narrow(0, part.begin, size), first, second, runs);
}

void Adam::step(Arena& arena, const UpdateStep& update) {
  step_runs(arena, layout_.runs<kernels::AdamScalars>(
                       update, [&](const GroupSettings& group) { return numbers(update, group); }));
}

std::vector<StateTensor> Adam::state() {
  return {{"exp_avg", exp_avg_},
          {.name = "exp_avg_sq", .values = exp_avg_sq_, .held = second_moments_}};
}

}  // namespace stretto::optim
