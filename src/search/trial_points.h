#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/sampler.h"
#include "search/search_plan.h"
#include "search/search_state.h"

namespace stretto::search {

/// The points that trials begin with: those of the plan's sampler whose configuration breaks no
/// rule. A point of `search.points` that is passed over is told, since whoever wrote it wants to
/// know why.
class TrialPoints {
 public:
  /// @param points_place  where `search.points` stands, for messages
  explicit TrialPoints(std::string points_place) : points_place_(std::move(points_place)) {}

  /// The point of the next trial; absent: there is none. The answer stays the same until taken().
  /// Throws Error(kUsage) where the configuration was changed (require_same_recipe()).
  const std::optional<Sampler::Choice>& next(const SearchState& state);
  /// A trial has begun with it.
  void taken() { has_looked_ = false; }

 private:
  bool is_sound(const SearchPlan& plan, const Point& point);
  void report_skipped_points(const SearchPlan& plan,
                             const std::vector<Sampler::SkippedPoint>& skipped_points);

  std::string points_place_;
  std::optional<Sampler::Choice> next_;
  bool has_looked_ = false;        // next_ is that of the next trial
  std::set<size_t> passed_over_;   // of search.points
  std::set<std::string> refused_;  // points that a rule refused in this session
  RefusedPoints refusals_;         // the same, counted
};

}  // namespace stretto::search
