#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/space.h"

namespace stretto::search {

/// Whether a point may be tried at all: its configuration breaks no rule.
using PointCheck = std::function<bool(const Point&)>;

/// Chooses the next point of a search. It has no state of its own: with the same seed, space and
/// points that there are, it makes the same choice, so that a search that goes on needs the list of
/// its points and nothing else.
struct Sampler {
  Space space;
  uint64_t seed = 1;
  bool grid = false;
  /// To be tried before any that is drawn, with values for some parameters or for all.
  std::vector<Point> enqueued = {};

  /// A point, and how many of `enqueued` are used up with it.
  struct Choice {
    Point point;
    size_t num_enqueued = 0;
  };
  /// One of `enqueued` that no trial gets.
  struct SkippedPoint {
    size_t number = 0;  ///< in `enqueued`
    /// As it was drawn last; it is in the space and new, but not sound, or else it is known.
    Point point;
    enum class Reason : uint8_t { kKnown, kNotSound, kNotInSpace } reason = Reason::kKnown;
  };

  /// @param known         texts (Space::text) of the points that trials have
  /// @param num_enqueued  of the last choice
  /// @param passed_over   gets the enqueued points that are known, not in the space or not sound,
  ///                      with any values for what they leave out; may be null
  /// @return absent when no point is left: a grid is at its end, or a finite space is used up
  std::optional<Choice> next(const std::set<std::string>& known, size_t num_enqueued,
                             const PointCheck& is_sound,
                             std::vector<SkippedPoint>* skipped_points = nullptr) const;
};

}  // namespace stretto::search
