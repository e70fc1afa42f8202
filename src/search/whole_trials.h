#pragma once

#include <map>

#include "search/scheduler.h"

namespace stretto::search {

/// Every trial is trained to its end in one go: for grid and random search.
class WholeTrials : public Scheduler {
 public:
  WholeTrials(int64_t max_trials, int64_t max_steps)
      : max_trials_(max_trials), max_steps_(max_steps) {}

  std::optional<Job> next(bool may_begin) override;
  void report(const Result& result) override;
  void raise_budget(int64_t max_trials) override;
  bool is_over(TrialId trial) const override { return ended_.contains(trial); }
  std::vector<Rung> rungs() const override;
  std::vector<std::string> plan() const override;

 private:
  int64_t max_trials_, max_steps_, begun_ = 0;
  std::map<TrialId, std::optional<double>> ended_;
};

}  // namespace stretto::search
