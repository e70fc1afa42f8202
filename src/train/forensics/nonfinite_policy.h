#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/forensics/forensics_options.h"
#include "train/forensics/remedies.h"

namespace stretto::train {

/// An update whose loss or gradient was not finite, and which was therefore left out.
struct FailedUpdate {
  bool loss_finite = false;  ///< only gradients were not
  bool scaled = false;       ///< a loss scaler has reacted: an overflow now and then is its routine
};

/// What to do after it.
struct NonfiniteDecision {
  enum class Action {
    kSkip,      ///< go on
    kStop,      ///< throw `NonfinitePolicy::stop_error`
    kRollback,  ///< restore `rollback_target()`, then `rolled_back()`; no target: stop
  };
  Action action = Action::kSkip;
  bool examine = false;  ///< run it again under the microscope (train/forensics/forensics.h) first
};

/// What a rollback can choose from.
struct RollbackChoice {
  std::vector<int64_t> checkpoints;  ///< their steps, ascending
  int64_t good_step = 0;             ///< of the newest that a finite update followed; 0 = none
  int64_t failed_step = 0;           ///< the update that could not be made
};

/// What the error that ends a run shall say.
struct NumericStop {
  int64_t step = 0;         ///< of the last update, as metrics.jsonl counts it
  std::string report = {};  ///< path of the newest one; empty = none
  std::string scale = {};   ///< what to do about the loss scale or precision; empty = nothing
  AdviceContext run = {};   ///< its rolls_back is not asked
};

/// Decides about updates that are not finite: `train.forensics.policy`. Pure: it restores and
/// prints nothing. All ranks feed it the same values and so agree.
///
/// An overflow that a loss scaler answers by another scale says nothing of the run's health, and
/// does not count for `stop_after`; kSkipsBeforeStop in a row of any kind stop every run. Nor is it
/// worth a report, while the scaler looks for its first scale, or a few times in a row later.
///
/// After a rollback the data order and all counters go back with the checkpoint, but this object's
/// state must not: it holds the number of rollbacks and the smaller learning rate.
class NonfinitePolicy {
 public:
  /// This many skips in a row end the run.
  static constexpr int64_t kSkipsBeforeStop = 50;
  /// A loss scaler that has found a scale may need a few overflows in a row to find the next one;
  /// one more is examined. Until then, and so before the first finite update, it needs as many as
  /// there are halvings from its first scale.
  static constexpr int64_t kRoutineOverflows = 3;

  explicit NonfinitePolicy(const ForensicsOptions& options) : options_(options) {}

  /// After each update that was left out because it was not finite.
  NonfiniteDecision failed(const FailedUpdate& update);
  /// After each update that was finite.
  void succeeded();

  /// The factor of all rollbacks so far; it multiplies the learning rate of the schedule.
  double lr_factor() const;
  /// Step of the checkpoint to go back to, 0 when none will do.
  ///
  /// The newest that a finite update followed: whether the weights of a later one can be trained is
  /// not known. But when the run failed again before it had got past its earlier failures, or from
  /// the checkpoint that it went back to last, one older than that; there being none, the oldest
  /// again, since its next try has a smaller learning rate.
  int64_t rollback_target(const RollbackChoice& choice) const;
  /// After the checkpoint of `to_step` was restored.
  void rolled_back(int64_t failed_step, int64_t to_step);
  int64_t skips_in_a_row() const { return skips_in_a_row_; }
  int64_t rollbacks() const { return rollbacks_; }

  /// Error(kNumeric) for Action::kStop, or for a rollback that finds no target.
  Error stop_error(const NumericStop& stop) const;
  /// The error of a loss scaler's own stop, which ends the run under every policy.
  Error stop_error(const Error& of_scaler, const NumericStop& stop) const;

  /// Everything that a resumed run needs, by name.
  std::map<std::string, double> state() const;
  /// What is missing in `state` starts afresh.
  void restore(const std::map<std::string, double>& state);

 private:
  void begin_again();
  std::string advice(const NumericStop& stop, bool rollback_helps) const;

  ForensicsOptions options_;
  int64_t skips_in_a_row_ = 0, rollbacks_ = 0, reports_ = 0;
  int64_t failures_in_a_row_ = 0;               // skips but for a scaler's routine
  int64_t furthest_failure_ = 0, back_at_ = 0;  // steps: that rollbacks were for; last target
  bool examined_ = false;                       // since the last good update
  bool scale_found_ = false;                    // there was a good update
};

}  // namespace stretto::train
