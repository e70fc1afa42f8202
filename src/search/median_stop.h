#pragma once

#include <map>
#include <set>

#include "search/scheduler.h"

namespace stretto::search {

/// The median stopping rule (Golovin et al. 2017, "Google Vizier: A Service for Black-Box
/// Optimization", section 3.2.1): every `check_every` updates, a trial ends whose best score so far
/// is worse than the median, over the other trials that have come as far, of the mean of their
/// scores up to there. No trial is judged before `grace_steps` updates, nor by fewer than
/// `min_trials` others.
///
/// A trial that has begun is trained on before another one begins.
class MedianStop : public Scheduler {
 public:
  /// @param options  check_every = 0: a fifth of max_steps
  MedianStop(const StopOptions& options, int64_t max_trials, int64_t max_steps);

  std::optional<Job> next(bool may_begin) override;
  void report(const Result& result) override;
  void raise_budget(int64_t max_trials) override;
  bool is_over(TrialId trial) const override { return over_.contains(trial); }
  std::vector<Rung> rungs() const override;
  std::vector<std::string> plan() const override;

 private:
  using Curve = std::map<int64_t, std::optional<double>>;  // scores by updates

  int64_t check_after(int64_t step) const;
  /// What the best of a trial's scores must not be worse than; absent = not to be judged.
  std::optional<double> median_at(int64_t step, TrialId without) const;
  std::optional<double> best_until(const Curve& curve, int64_t step) const;

  StopOptions options_;
  int64_t max_trials_, max_steps_, begun_ = 0;
  std::map<TrialId, Curve> curves_;
  std::map<TrialId, std::optional<double>> judged_by_;  // the median at a trial's last check
  std::set<TrialId> waiting_, over_;                    // to be trained on; ended
};

}  // namespace stretto::search
