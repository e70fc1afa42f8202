#include "optim/sgd.h"

namespace stretto::optim {

Sgd::Sgd(const OptimOptions& options, const Arena& arena)
    : options_(options), velocity_(torch::zeros_like(arena.params())) {}

void Sgd::step(Arena& arena, const UpdateStep& update) {
  torch::NoGradGuard no_grad;
  torch::Tensor grad = arena.grads() * update.grad_scale;
  if (options_.weight_decay > 0) {
    grad.narrow(0, 0, arena.decay_size())
        .add_(arena.params().narrow(0, 0, arena.decay_size()), options_.weight_decay);
  }
  velocity_.mul_(options_.momentum).add_(grad);
  if (options_.nesterov) {
    arena.params().add_(grad.add_(velocity_, options_.momentum), -update.lr);
  } else {
    arena.params().add_(velocity_, -update.lr);
  }
}

std::vector<std::pair<std::string, torch::Tensor>> Sgd::state() {
  return {{"velocity", velocity_}};
}

}  // namespace stretto::optim
