#include "optim/adagrad.h"

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Adagrad::Adagrad(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options), layout_(options, arena, slice), sum_(layout_.zeros(arena)) {}

void Adagrad::step(Arena& arena, const UpdateStep& update) {
  const auto runs = layout_.runs<kernels::AdagradScalars>(update, [&](const GroupSettings& group) {
    return kernels::AdagradScalars{.grad = static_cast<float>(update.grad_scale),
                                   .decay = static_cast<float>(group.weight_decay),
                                   .rate = static_cast<float>(update.lr * group.lr_scale),
                                   .epsilon = static_cast<float>(options_.epsilon)};
  });
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::adagrad_runs(params, layout_.part_of(arena.grads()), sum_, runs);
}

}  // namespace stretto::optim
