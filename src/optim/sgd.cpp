#include "optim/sgd.h"

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Sgd::Sgd(const OptimOptions& options, const Arena& arena, Slice slice)
    : layout_(options, arena, slice), velocity_(options, layout_, arena) {}

void Sgd::step(Arena& arena, const UpdateStep& update) {
  velocity_.set_rate(update.lr);
  const auto runs = layout_.runs<kernels::MomentumScalars>(update, [&](const GroupSettings& group) {
    return velocity_.numbers(update.grad_scale, group.weight_decay, group.lr_scale);
  });
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::momentum_runs(params, layout_.part_of(arena.grads()), velocity_.values(), runs);
}

}  // namespace stretto::optim
