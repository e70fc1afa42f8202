#include "optim/bounded_gradients.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/optimizer/steps.h"
#include "optim/layer_norms.h"

namespace stretto::optim {

double larc_ratio(double eta, double lr, double weight, double gradient) {
  constexpr double kEpsilon = 1e-7, kSmallest = 1e-7;
  // At a rate of 0 any ratio does.
  return lr == 0 ? 1 : std::clamp(eta * weight / (lr * (gradient + kEpsilon)), kSmallest, 1.0);
}

BoundedGradients::BoundedGradients(const OptimOptions& options, const Arena& arena, Slice slice,
                                   std::unique_ptr<Optimizer> rule)
    : eta_(options.larc_eta), layout_(options, arena, slice), rule_(std::move(rule)) {}

void BoundedGradients::step(Arena& arena, const UpdateStep& update) {
  torch::Tensor grads = layout_.part_of(arena.grads());
  const auto runs = layout_.block_runs<kernels::NormScalars>([&](const Part&) {
    return kernels::NormScalars{.grad = static_cast<float>(update.grad_scale), .decay = 0};
  });
  const auto squares = kernels::squares_of_runs(layout_.part_of(arena.params()), grads, runs);
  const auto sums = of_whole_tensors(layout_, squares, update);
  for (const Part& part : layout_.tensors()) {
    const GroupSettings& group = layout_.settings(part);
    const auto& sum = sums[part.slot];
    if (group.exempt || !steps(update, group) || sum.weight == 0 || sum.update == 0) continue;
    const double ratio =
        larc_ratio(eta_, update.lr * group.lr_scale, std::sqrt(sum.weight), std::sqrt(sum.update));
    if (ratio < 1) grads.narrow(0, part.begin, part.end - part.begin).mul_(ratio);
  }
  rule_->step(arena, update);
}

}  // namespace stretto::optim
