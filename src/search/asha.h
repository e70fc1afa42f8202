#pragma once

#include <map>
#include <utility>

#include "search/scheduler.h"

namespace stretto::search {

/// One bracket of asynchronous successive halving: its rungs, and the trials that it may have.
struct AshaBracket {
  std::vector<int64_t> lengths;  ///< updates at each rung, ascending; the last is the whole trial
  int64_t max_trials = 0;
  int64_t max_concurrent = 0;  ///< jobs at a time
};

/// The brackets of adaptive ASHA, that with the most rungs first.
///
/// With divisor d, the most rungs are R = min(max_rungs, floor(log_d max_steps) + 1,
/// floor(log_d max_trials) + 1). Mode `conservative` has brackets of R, R - 1, …, 1 rungs,
/// `standard` those of them with at least floor((R - 1) / 2) + 1, `aggressive` the first alone.
/// Rung i of a bracket of r rungs is at max_steps / d^(r - 1 - i) updates, at least 1. Trials are
/// shared out in proportion to d^(r - 1) / r, at least one each, and the rest goes to the first
/// bracket. A bracket trains no more at a time than the last bracket has trials, and d at least.
std::vector<AshaBracket> asha_brackets(const AshaOptions& options, int64_t max_trials,
                                       int64_t max_steps);

/// Asynchronous successive halving (Li et al. 2020, "A System for Massively Parallel Hyperparameter
/// Tuning") over several brackets, as Determined's adaptive ASHA has them.
///
/// The best floor(n / d) of n results at a rung go on to the next one, as soon as they are among
/// them: no trial waits until a rung is full. A free slot promotes where it can, from the highest
/// rung down, and otherwise begins a new trial in the bracket that is furthest behind its share.
/// Equal scores rank by their trials' numbers. A failed trial ranks last and never goes on.
class Asha : public Scheduler {
 public:
  Asha(std::vector<AshaBracket> brackets, int64_t divisor);

  std::optional<Job> next(bool may_begin) override;
  void report(const Result& result) override;
  /// Brackets and rungs stay as they are; each bracket has more trials in the same proportion.
  void raise_budget(int64_t max_trials) override;
  bool is_over(TrialId trial) const override;
  int64_t bracket_of(TrialId trial) const override { return bracket_of_.at(trial); }
  std::vector<Rung> rungs() const override;
  std::vector<std::string> plan() const override;

 private:
  struct State {
    AshaBracket bracket;
    std::vector<std::vector<Competitor>> rungs;  // each the best first
    std::vector<int64_t> arrivals;               // jobs that were begun for each rung
    int64_t running = 0;
  };

  std::optional<Job> promotion();
  size_t quota(const std::vector<Competitor>& rung) const;
  std::vector<int64_t> final_quotas(const State& state) const;

  std::vector<State> brackets_;
  int64_t divisor_;
  std::map<TrialId, int64_t> bracket_of_;
};

}  // namespace stretto::search
