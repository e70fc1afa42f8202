#include "optim/novograd.h"

#include <cmath>

#include "kernels/optimizer/steps.h"
#include "optim/layer_norms.h"

namespace stretto::optim {

Novograd::Novograd(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      velocity_(layout_.zeros(arena)),
      norm_sq_(torch::zeros({static_cast<int64_t>(layout_.num_slots())}, torch::kFloat)) {}

void Novograd::step(Arena& arena, const UpdateStep& update) {
  torch::Tensor params = layout_.part_of(arena.params());
  const torch::Tensor grads = layout_.part_of(arena.grads());
  const auto norm_runs = layout_.block_runs<kernels::NormScalars>([&](const Part&) {
    return kernels::NormScalars{.grad = static_cast<float>(update.grad_scale), .decay = 0};
  });
  const auto sums =
      of_whole_tensors(layout_, kernels::squares_of_runs(params, grads, norm_runs), update);
  float* v = norm_sq_.data_ptr<float>();
  for (size_t slot = 0; slot < sums.size(); ++slot) {
    // Zero means that no gradient came yet, as upstream tells its first update.
    const double before = static_cast<double>(v[slot]), now = sums[slot].update;
    v[slot] = static_cast<float>(
        before == 0 ? now : options_.beta2 * before + (1 - options_.beta2) * now);
  }
  const auto runs = layout_.tensor_runs<kernels::MomentumScalars>(update, [&](const Part& part) {
    const GroupSettings& group = layout_.settings(part);
    const double norm = std::sqrt(static_cast<double>(v[part.slot]) + options_.epsilon);
    return kernels::MomentumScalars{
        .grad = static_cast<float>(update.grad_scale / norm),
        .decay = static_cast<float>(group.weight_decay),
        .carry = static_cast<float>(options_.beta1),
        .gain = options_.grad_averaging ? static_cast<float>(1 - options_.beta1) : 1.0f,
        .ahead = 0,
        .look = static_cast<float>(update.lr * group.lr_scale)};
  });
  kernels::momentum_runs(params, grads, velocity_, runs);
}

std::vector<StateTensor> Novograd::state() {
  return {{"velocity", velocity_}, {"norm_sq", norm_sq_, false}};
}

}  // namespace stretto::optim
