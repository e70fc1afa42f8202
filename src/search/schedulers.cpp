// Free functions of search/scheduler.h.
#include <type_traits>

#include "base/text.h"
#include "search/asha.h"
#include "search/median_stop.h"
#include "search/whole_trials.h"

namespace stretto::search {
namespace {

std::unique_ptr<Scheduler> stopping_as(const StopOptions& stop, int64_t max_trials,
                                       int64_t max_steps) {
  if (stop.name == "median") return std::make_unique<MedianStop>(stop, max_trials, max_steps);
  return std::make_unique<WholeTrials>(max_trials, max_steps);
}

}  // namespace

bool ranks_before(const Competitor& a, const Competitor& b) {
  if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
  if (a.score && *a.score != *b.score) return *a.score < *b.score;
  return a.trial < b.trial;
}

std::string trials_text(int64_t max_trials, int64_t max_steps) {
  const std::string updates = counted(max_steps, "update");
  if (max_trials == kAllPoints) return "a trial of " + updates + " for each point of the grid";
  return counted(max_trials, "trial") + " of " + updates;
}

std::unique_ptr<Scheduler> make_scheduler(const MethodChoice& method, int64_t max_trials,
                                          int64_t max_steps) {
  return method.visit([&](const auto& options) -> std::unique_ptr<Scheduler> {
    if constexpr (std::is_same_v<std::decay_t<decltype(options)>, AshaOptions>) {
      return std::make_unique<Asha>(asha_brackets(options, max_trials, max_steps), options.divisor);
    } else {
      return stopping_as(options.stop, max_trials, max_steps);
    }
  });
}

}  // namespace stretto::search
