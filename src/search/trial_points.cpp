#include "search/trial_points.h"

#include "base/log.h"
#include "base/text.h"
#include "search/changes.h"
#include "search/space_check.h"

namespace stretto::search {

const std::optional<Sampler::Choice>& TrialPoints::next(const SearchState& state) {
  if (has_looked_) return next_;
  const auto& plan = state.plan();
  require_same_recipe(plan);
  next_.reset();
  if (static_cast<int64_t>(state.trials().size()) < plan.budget()) {
    std::vector<Sampler::SkippedPoint> skipped_points;
    next_ = plan.sampler().next(
        state.known_points(), state.num_enqueued(),
        [&](const Point& point) { return is_sound(plan, point); }, &skipped_points);
    report_skipped_points(plan, skipped_points);
    if (!next_) {
      const std::string refused = refusals_.text();
      log::info("the space has no more points" + (refused.empty() ? "" : "; " + refused));
    }
  }
  has_looked_ = true;
  return next_;
}

// A grid is walked from its first point for each trial: what was refused is not read again.
bool TrialPoints::is_sound(const SearchPlan& plan, const Point& point) {
  const std::string text = plan.space.text(point);
  if (refused_.contains(text)) return false;
  const std::string why = refusal_of(plan, point);
  if (why.empty()) return true;
  refused_.insert(text);
  refusals_.add(text, why);
  return false;
}

void TrialPoints::report_skipped_points(const SearchPlan& plan,
                                        const std::vector<Sampler::SkippedPoint>& skipped_points) {
  for (const auto& one : skipped_points) {
    if (!passed_over_.insert(one.number).second) continue;
    std::string why = "it is not in the space any more";
    if (one.reason == Sampler::SkippedPoint::Reason::kKnown) why = "a trial has it already";
    if (one.reason == Sampler::SkippedPoint::Reason::kNotSound) {
      why = "its configuration is not sound: " + refusal_of(plan, one.point);
    }
    const auto& points = plan.options.search.points;
    log::warn(points_place_ + ": point " + std::to_string(one.number + 1) + " of " +
              std::to_string(points.size()) + " is passed over, `" +
              printable(points.at(one.number)) + "`: " + why);
  }
}

}  // namespace stretto::search
