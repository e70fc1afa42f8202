#pragma once

#include <cstdint>
#include <vector>

#include "optim/arena.h"
#include "optim/held_elements.h"

namespace stretto::optim {

/// A copy of the weights of some tensors of an arena, for whoever changes them for a while.
/// Memory: one more copy of these tensors, from the first keep() on.
class KeptSlots {
 public:
  /// @param slots  of the arena, in its order
  KeptSlots(Arena& arena, const std::vector<Arena::Slot>& slots);

  void keep();     ///< copies the weights as they stand
  void restore();  ///< writes the last copy back, to the bit

 private:
  /// Tensors that stand side by side in the arena, and what lies between them.
  struct Stretch {
    Slice place;
    int64_t kept_at = 0;
  };

  Arena& arena_;
  std::vector<Stretch> stretches_;
  int64_t size_ = 0;
  torch::Tensor kept_;  ///< the weights of all stretches
};

}  // namespace stretto::optim
