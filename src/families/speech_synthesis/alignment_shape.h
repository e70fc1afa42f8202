#pragma once

#include <cstdint>
#include <span>

/// How much an attention of a decoder over a text looks like speech: it goes through the text once,
/// from left to right. No libtorch.
namespace stretto::tasks {

/// A step may move this many places ahead: over a space, a silent letter or punctuation.
inline constexpr int64_t kMostAhead = 3;

struct AlignmentShape {
  /// Share of the steps behind the first one, which move 0 to kMostAhead places ahead; 1 without
  /// such steps.
  double monotonic = 1;
  /// Share of the text that these steps go through, the place of the first step with it; at most 1.
  double covered = 0;

  /// 1 for a diagonal. An attention that stays in one place covers nothing, and one that jumps is
  /// not monotonic.
  double diagonality() const { return monotonic * covered; }
};

/// @param peaks  [steps]: the place that each step attends to most, in [0, num_places)
AlignmentShape alignment_shape(std::span<const int64_t> peaks, int64_t num_places);

}  // namespace stretto::tasks
