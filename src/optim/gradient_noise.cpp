#include "optim/gradient_noise.h"

#include <cmath>

#include "optim/normal_noise.h"

namespace stretto::optim {

double gradient_noise_deviation(double eta, double decay, int64_t step) {
  return std::sqrt(eta / std::pow(1 + static_cast<double>(step), decay));
}

void add_gradient_noise(Arena& arena, Slice slice, uint64_t key, double deviation,
                        int64_t updates) {
  const torch::NoGradGuard no_grad;
  for (const auto& slot : arena.slots()) {
    const Slice part = part_in(slot, slice);
    if (part.size() == 0 || slot.begins > updates) continue;
    const torch::Tensor noise =
        normal_noise(slot.name, {part.begin - slot.offset, part.end - slot.offset}, key,
                     static_cast<float>(deviation));
    torch::Tensor grads = arena.grads().narrow(0, part.begin, part.size());
    grads.add_(noise.to(grads.options()));
  }
}

}  // namespace stretto::optim
