#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "train/forensics_options.h"

namespace stretto::train {

/// An update whose loss or gradient was not finite, and which was therefore left out.
struct FailedUpdate {
  bool loss_finite = false;  ///< only gradients were not
  bool scaled = false;       ///< a loss scaler can react: an overflow now and then is its routine
};

/// What to do after it.
struct NonfiniteDecision {
  enum class Action {
    kSkip,      ///< go on
    kStop,      ///< throw `NonfinitePolicy::stop_error`
    kRollback,  ///< restore the last checkpoint, go on with `lr_factor()`; none there: stop
  };
  Action action = Action::kSkip;
  bool examine = false;  ///< run it again under the microscope (train/forensics.h) first
};

/// Decides over updates that are not finite: `train.forensics.policy`. Pure: it restores and prints
/// nothing. All ranks feed it the same values and so agree.
///
/// After a rollback the data order and all counters go back with the checkpoint, but this object's
/// state must not: it holds the number of rollbacks and the smaller learning rate.
class NonfinitePolicy {
 public:
  /// With policy "skip" so many in a row end the run.
  static constexpr int64_t kSkipsBeforeStop = 50;
  /// A loss scaler needs a few overflows in a row to find its scale; the next one is examined.
  static constexpr int64_t kRoutineOverflows = 3;

  explicit NonfinitePolicy(const ForensicsOptions& options) : options_(options) {}

  /// After each update that was left out because it was not finite.
  NonfiniteDecision failed(const FailedUpdate& update);
  /// After each update that was finite.
  void succeeded();

  /// Of all rollbacks so far; multiplies the learning rate of the schedule.
  double lr_factor() const;
  int64_t skips_in_a_row() const { return skips_in_a_row_; }
  int64_t rollbacks() const { return rollbacks_; }

  /// Error(kNumeric) for Action::kStop, or for a rollback that finds no checkpoint.
  /// @param step    of the last update, as metrics.jsonl counts it
  /// @param report        path of the newest report; empty = none
  /// @param scale_advice  what to do about the loss scale (loss_scale_advice()); empty = nothing
  Error stop_error(int64_t step, const std::string& report,
                   const std::string& scale_advice = {}) const;

  /// Everything that a resumed run needs, by name.
  std::map<std::string, double> state() const;
  /// What is missing in `state` starts afresh.
  void restore(const std::map<std::string, double>& state);

 private:
  ForensicsOptions options_;
  int64_t skips_in_a_row_ = 0, rollbacks_ = 0, reports_ = 0;
  bool examined_ = false;  // since the last good update
};

}  // namespace stretto::train
