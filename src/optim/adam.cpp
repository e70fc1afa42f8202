#include "optim/adam.h"

#include "kernels/kernels.h"

namespace stretto::optim {

Adam::Adam(const OptimOptions& options, const Arena& arena)
    : options_(options),
      exp_avg_(torch::zeros_like(arena.params())),
      exp_avg_sq_(torch::zeros_like(arena.params())) {}

void Adam::step(Arena& arena, const UpdateStep& update) {
  torch::NoGradGuard no_grad;
  const auto update_range = [&](int64_t begin, int64_t end, double weight_decay) {
    if (begin == end) return;
    const auto part = [&](torch::Tensor& buffer) { return buffer.narrow(0, begin, end - begin); };
    auto params = part(arena.params()), m = part(exp_avg_), v = part(exp_avg_sq_);
    kernels::adam_step(params, part(arena.grads()), m, v,
                       {.lr = update.lr,
                        .beta1 = options_.beta1,
                        .beta2 = options_.beta2,
                        .epsilon = options_.epsilon,
                        .weight_decay = weight_decay,
                        .grad_scale = update.grad_scale,
                        .step = update.number,
                        .decoupled = options_.name == "adamw"});
  };
  if (options_.weight_decay == 0) {
    update_range(0, arena.size(), 0);
  } else {
    update_range(0, arena.decay_size(), options_.weight_decay);
    update_range(arena.decay_size(), arena.size(), 0);
  }
}

std::vector<std::pair<std::string, torch::Tensor>> Adam::state() {
  return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}};
}

}  // namespace stretto::optim
