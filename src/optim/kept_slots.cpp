#include "optim/kept_slots.h"

#include <torch/torch.h>

namespace stretto::optim {

KeptSlots::KeptSlots(Arena& arena, const std::vector<Arena::Slot>& slots) : arena_(arena) {
  const Arena::Slot* before = nullptr;
  for (const auto& slot : slots) {
    const int64_t end = slot.offset + slot.numel;
    // Offsets are rounded up: only a gap lies between neighbours.
    constexpr int64_t kLargestGap = 15;
    if (before != nullptr && slot.offset - (before->offset + before->numel) <= kLargestGap) {
      size_ += end - stretches_.back().place.end;
      stretches_.back().place.end = end;
    } else {
      stretches_.push_back({.place = {slot.offset, end}, .kept_at = size_});
      size_ += slot.numel;
    }
    before = &slot;
  }
}

void KeptSlots::keep() {
  const torch::NoGradGuard no_grad;
  if (!kept_.defined()) {
    kept_ = torch::empty({size_}, arena_.params().options().requires_grad(false));
  }
  for (const Stretch& stretch : stretches_) {
    const int64_t size = stretch.place.size();
    kept_.narrow(0, stretch.kept_at, size)
        .copy_(arena_.params().narrow(0, stretch.place.begin, size));
  }
}

void KeptSlots::restore() {
  const torch::NoGradGuard no_grad;
  for (const Stretch& stretch : stretches_) {
    const int64_t size = stretch.place.size();
    arena_.params()
        .narrow(0, stretch.place.begin, size)
        .copy_(kept_.narrow(0, stretch.kept_at, size));
  }
}

}  // namespace stretto::optim
