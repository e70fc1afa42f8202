#include "search/whole_trials.h"

#include <algorithm>

namespace stretto::search {

std::optional<Job> WholeTrials::next(bool may_begin) {
  if (!may_begin || begun_ >= max_trials_) return std::nullopt;
  return Job{.trial = begun_++, .until = max_steps_, .begins = true};
}

void WholeTrials::report(const Result& result) {
  ended_[result.trial] = result.score;
}

void WholeTrials::raise_budget(int64_t max_trials) {
  max_trials_ = std::max(max_trials_, max_trials);
}

std::vector<Rung> WholeTrials::rungs() const {
  Rung end{.until = max_steps_, .is_last = true};
  for (const auto& [trial, score] : ended_) {
    end.competitors.push_back({.trial = trial, .score = score});
  }
  std::sort(end.competitors.begin(), end.competitors.end(), ranks_before);
  return {end};
}

std::vector<std::string> WholeTrials::plan() const {
  return {trials_text(max_trials_, max_steps_)};
}

}  // namespace stretto::search
