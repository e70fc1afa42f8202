#include "families/speech_synthesis/alignment_shape.h"

#include <algorithm>
#include <cstddef>

namespace stretto::tasks {

AlignmentShape alignment_shape(std::span<const int64_t> peaks, int64_t num_places) {
  if (peaks.empty() || num_places < 1) return {};
  int64_t good = 0, advance = 1;
  for (size_t step = 1; step < peaks.size(); ++step) {
    const int64_t moved = peaks[step] - peaks[step - 1];
    if (moved < 0 || moved > kMostAhead) continue;
    ++good;
    advance += moved;
  }
  const auto steps = static_cast<double>(peaks.size() - 1);
  return {.monotonic = steps == 0 ? 1 : static_cast<double>(good) / steps,
          .covered = std::min(1.0, static_cast<double>(advance) / static_cast<double>(num_places))};
}

}  // namespace stretto::tasks
