#include "optim/held_elements.h"

#include <algorithm>

namespace stretto::optim {

int64_t HeldElements::count_before(int64_t end) const {
  if (is_all()) return end;
  int64_t count = 0;
  for (const Slice& stretch : *stretches_) {
    count += std::clamp<int64_t>(end - stretch.begin, 0, stretch.size());
  }
  return count;
}

}  // namespace stretto::optim
