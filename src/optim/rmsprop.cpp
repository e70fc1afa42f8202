#include "optim/rmsprop.h"

#include "kernels/optimizer/steps.h"

namespace stretto::optim {

Rmsprop::Rmsprop(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      square_avg_(layout_.zeros(arena)),
      velocity_(layout_.zeros(arena)) {}

void Rmsprop::step(Arena& arena, const UpdateStep& update) {
  const auto runs = layout_.runs<kernels::RmspropScalars>(update, [&](const GroupSettings& group) {
    return kernels::RmspropScalars{.grad = static_cast<float>(update.grad_scale),
                                   .decay = static_cast<float>(group.weight_decay),
                                   .second = kernels::moving_average(options_.beta2),
                                   .epsilon = static_cast<float>(options_.epsilon),
                                   .momentum = static_cast<float>(options_.momentum),
                                   .rate = static_cast<float>(update.lr * group.lr_scale)};
  });
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::rmsprop_runs(params, layout_.part_of(arena.grads()), square_avg_, velocity_, runs);
}

std::vector<StateTensor> Rmsprop::state() {
  return {{"square_avg", square_avg_}, {"velocity", velocity_}};
}

}  // namespace stretto::optim
