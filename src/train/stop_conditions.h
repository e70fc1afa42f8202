#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runs/train_state.h"
#include "train/train_options.h"

namespace stretto::train {

/// When a run ends: train.max_steps, train.max_epochs, train.max_hours, train.patience and
/// train.stop, and the updates after which this process leaves a run that goes on later
/// (`--until`).
///
/// A pure function of the run's counters, so that all ranks come to the same end. The time is the
/// exception: each rank has a clock of its own, and the caller says what they agreed on.
class StopConditions {
 public:
  /// @param until        in updates; 0 = this process trains to the run's end
  /// @param num_batches  micro-batches of an epoch
  /// @param eval_every   updates between validations, of whose scores train.stop makes a curve
  StopConditions(const TrainOptions& train, int64_t until, int64_t num_batches,
                 int64_t eval_every = 1);

  /// Why the run has ended, "train.max_steps reached"; nullopt: it has not.
  /// @param time_is_up  what all ranks agreed on
  std::optional<std::string> reason(const runs::TrainState& state, bool time_is_up) const;
  /// Whether the run has trained for train.max_hours.
  bool time_is_up(const runs::TrainState& state) const;
  /// Whether `until` is reached.
  bool is_far_enough(const runs::TrainState& state) const;

  int64_t max_steps() const { return max_steps_; }  ///< updates; 0 = no limit
  /// Step that ends the run or this process, as far as is known: each update that is left out moves
  /// it. 0 = unknown.
  int64_t last_step(const runs::TrainState& state) const;
  /// Seconds until the first condition holds, as far as is known; -1 = unknown.
  /// @param seconds_per_update  so far; negative = unknown
  double seconds_left(const runs::TrainState& state, double seconds_per_update) const;

 private:
  std::optional<std::string> optimal_reason(const runs::TrainState& state) const;
  static int64_t counted_updates(const runs::TrainState& state) {
    return state.counts_attempts ? state.step : state.stepped();
  }

  int64_t max_steps_, max_epochs_, patience_, update_freq_;
  double max_seconds_;
  int64_t until_, num_batches_, eval_every_;
  bool stops_when_optimal_;
  double size_exponent_;
};

}  // namespace stretto::train
