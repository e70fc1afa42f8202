#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/compute.h"
#include "optim/nonmonotone.h"
#include "optim/schedule.h"
#include "runs/train_state.h"
#include "train/task.h"
#include "train/train_options.h"

namespace stretto::train {

/// When and how a run validates.
struct ValidatorSetup {
  ValidationOptions eval;
  bool higher_is_better = false;    ///< of the score that eval.best_metric names
  optim::ScheduleOptions schedule;  ///< `plateau` goes by validations
  int64_t average_nonmono = 0;      ///< train.average_nonmono goes by them too
  /// Completed updates before weights are pruned for the last time (compress.prune): up to there
  /// train.patience ends no run. 0 = nothing is pruned later than at the start.
  int64_t pruned_after = 0;
  kernels::Compute compute = kernels::Compute::kFp32;
};

/// The validations of a run: when one is due, the task's scores, and what follows from them for the
/// run: the best step, train.patience, the reductions of the schedule `plateau`, and when weights
/// begin to be averaged (train.average_nonmono).
///
/// All ranks validate together and have the same scores, so that they decide alike.
class Validator {
 public:
  /// The task must outlive it.
  Validator(Task& task, ValidatorSetup setup);

  /// Whether the run validates before its next step.
  /// @param at_end  no step follows in this process
  bool is_due(const runs::TrainState& state, bool at_end) const;

  /// The task's scores with the weights that the model has now; leaves the model in eval mode.
  /// Collective.
  Validation validate();

  /// Takes the scores into `state`. Those from before the first update are no result of training:
  /// nothing is compared with them. Throws Error(kUsage) where none of them is eval.best_metric.
  /// @return whether this validation is the best so far
  bool judge(const Validation& validation, runs::TrainState& state);

  /// Says that the model is another one from now on, some more of whose weights are zero: later
  /// validations are not compared with those before. What was decided by these stays: reductions of
  /// the rate, and a mean of weights that has begun.
  void begin_anew(runs::TrainState& state);

  /// How often the schedule `plateau` has reduced the rate so far.
  int64_t reductions() const { return plateau_.reductions; }
  /// The updates behind which weights are averaged; nothing: they are not, or not yet.
  std::optional<int64_t> average_begin() const { return nonmonotone_.begin(); }

  /// What a checkpoint keeps.
  std::map<std::string, double> state() const;
  /// What is missing in `state` starts afresh.
  void restore(const std::map<std::string, double>& state);

 private:
  const Score& score_to_rank_by(const std::vector<Score>& scores) const;

  Task& task_;
  ValidatorSetup setup_;
  optim::Plateau plateau_;
  optim::NonMonotone nonmonotone_;
  bool validated_start_ = false;  // eval.at_start, in this process
};

}  // namespace stretto::train
