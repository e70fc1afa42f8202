#include "train/stop_conditions.h"

#include <algorithm>

#include "train/compute_optimal.h"

namespace stretto::train {

StopConditions::StopConditions(const TrainOptions& train, int64_t until, int64_t num_batches,
                               int64_t eval_every)
    : max_steps_(train.max_steps),
      max_epochs_(train.max_epochs),
      patience_(train.patience),
      update_freq_(train.update_freq),
      max_seconds_(train.max_hours * 3600),
      until_(until),
      num_batches_(num_batches),
      eval_every_(eval_every),
      stops_when_optimal_(train.stop == "compute_optimal"),
      size_exponent_(train.size_exponent) {}

// Asked several times an update; the curve is another one only behind a validation.
std::optional<std::string> StopConditions::optimal_reason(const runs::TrainState& state) const {
  const bool is_validated = state.step > 0 && state.validated_step == state.step;
  if (!stops_when_optimal_ || !is_validated || state.step % eval_every_ != 0) return std::nullopt;
  return compute_optimal_reason(state.quality, eval_every_, size_exponent_);
}

std::optional<std::string> StopConditions::reason(const runs::TrainState& state,
                                                  bool time_is_up) const {
  if (max_steps_ > 0 && counted_updates(state) >= max_steps_) return "train.max_steps reached";
  if (max_epochs_ > 0 && state.epoch >= max_epochs_) return "train.max_epochs reached";
  if (time_is_up) return "train.max_hours reached";
  if (patience_ > 0 && state.bad_validations >= patience_) {
    return "no better validation in " + std::to_string(patience_) + " (train.patience)";
  }
  return optimal_reason(state);
}

bool StopConditions::time_is_up(const runs::TrainState& state) const {
  return max_seconds_ > 0 && state.seconds >= max_seconds_;
}

bool StopConditions::is_far_enough(const runs::TrainState& state) const {
  return until_ > 0 && counted_updates(state) >= until_;
}

int64_t StopConditions::last_step(const runs::TrainState& state) const {
  int64_t steps = max_steps_;
  if (until_ > 0 && (steps == 0 || until_ < steps)) steps = until_;
  return steps > 0 ? steps + state.skipped_updates : 0;
}

double StopConditions::seconds_left(const runs::TrainState& state,
                                    double seconds_per_update) const {
  if (seconds_per_update < 0) return -1;
  double left = -1;
  const auto consider = [&](double seconds) {
    if (left < 0 || seconds < left) left = std::max(0.0, seconds);
  };
  if (const int64_t last = last_step(state); last > 0) {
    consider(seconds_per_update * static_cast<double>(last - state.step));
  }
  if (max_seconds_ > 0) consider(max_seconds_ - state.seconds);
  if (max_epochs_ > 0) {
    const int64_t micro_batches = (max_epochs_ - state.epoch) * num_batches_ - state.batch_index;
    consider(seconds_per_update * static_cast<double>(micro_batches) /
             static_cast<double>(update_freq_));
  }
  return left;
}

}  // namespace stretto::train
