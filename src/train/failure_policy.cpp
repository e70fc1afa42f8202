#include "train/failure_policy.h"

#include <cmath>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "distributed/numbers.h"

namespace stretto::train {

FailurePolicy::FailurePolicy(Task& task, optim::Arena& arena, Updater& updater,
                             distributed::ProcessGroup group, FailurePolicySetup setup)
    : updater_(updater),
      group_(std::move(group)),
      nonfinite_(setup.options),
      spikes_(setup.options),
      forensics_(task, arena, updater, group_, std::move(setup.forensics)),
      activity_(std::move(setup.activity)) {}

SpikeVerdict FailurePolicy::finite(double loss, double grad_norm) {
  nonfinite_.succeeded();
  return spikes_.look(loss, grad_norm);
}

FailurePolicy::Verdict FailurePolicy::failed(const TrainStep& step, const runs::TrainState& state) {
  using Action = NonfiniteDecision::Action;
  const auto decision =
      nonfinite_.failed({.loss_finite = std::isfinite(step.update.totals.loss()),
                         .scaled = updater_.scaler().adapts() && !step.scaler_error});
  const std::string report =
      decision.examine || step.scaler_error ? examine(step, state) : std::string();
  NumericStop stop{.step = state.step, .report = report};
  if (step.scaler_error || decision.action == Action::kStop) {
    stop.run = forensics_.advice_context(state.good_step);
  }
  if (step.scaler_error) {
    const Error& error = *step.scaler_error;
    stop.scale = forensics_.advice_on_scale(step.update, error.advice());
    throw nonfinite_.stop_error(error, stop);
  }
  if (decision.action == Action::kStop) {
    stop.scale = forensics_.advice_on_scale(step.update);
    throw nonfinite_.stop_error(stop);
  }
  return {.rolls_back = decision.action == Action::kRollback, .report = report};
}

std::string FailurePolicy::examine(const TrainStep& step, const runs::TrainState& state) {
  if (activity_) activity_("looking for what is not finite");
  const std::string report = forensics_.examine(
      {.update = step.update, .step = state.step, .lr = step.lr, .good_step = state.good_step});
  if (activity_) activity_("");
  return report;
}

void FailurePolicy::roll_back(const std::string& report, runs::TrainState& state,
                              runs::Checkpointer& checkpointer,
                              const std::function<bool()>& restore) {
  const int64_t failed_step = state.step;
  const auto scale = updater_.scaler().state();
  const auto scales = forensics_.loss_scales();
  NonfinitePolicy nonfinite = nonfinite_;
  if (rollback_target(state, checkpointer) == 0 || !restore()) {
    const Error error = nonfinite_.stop_error(
        {.step = failed_step, .report = report, .run = forensics_.advice_context(state.good_step)});
    throw Error(error.code(),
                error.what() + std::string("; no checkpoint is there that a finite update followed,"
                                           " and so none to go back to"),
                error.advice());
  }
  updater_.scaler().restore(scale);
  forensics_.restore(scales);
  nonfinite_ = std::move(nonfinite);
  nonfinite_.rolled_back(failed_step, state.step);
  state.good_step = state.step;
  if (group_.is_root()) {
    log::warn("step " + with_thousands(failed_step) + ": back to the checkpoint of step " +
              with_thousands(state.step) + ", learning rate times " + shortest(lr_factor()));
  }
}

// Step of the checkpoint to go back to, 0 = none; those after it are out of the way.
int64_t FailurePolicy::rollback_target(const runs::TrainState& state,
                                       runs::Checkpointer& checkpointer) {
  std::vector<double> targets(static_cast<size_t>(group_.size()));
  if (group_.is_root()) {
    const int64_t target = nonfinite_.rollback_target({.checkpoints = checkpointer.steps(),
                                                       .good_step = state.good_step,
                                                       .failed_step = state.step});
    if (target > 0) checkpointer.undo_after(target);
    targets.front() = static_cast<double>(target);
  }
  distributed::gather_numbers(group_, targets);
  return static_cast<int64_t>(targets.front());
}

void FailurePolicy::save(runs::TrainState& state) const {
  state.parts["nonfinite"] = nonfinite_.state();
  state.parts["spikes"] = spikes_.state();
  state.loss_scales = forensics_.loss_scales();
}

void FailurePolicy::restore(const runs::TrainState& state) {
  const auto restore_part = [&](const char* name, auto& part) {
    if (const auto it = state.parts.find(name); it != state.parts.end()) part.restore(it->second);
  };
  restore_part("nonfinite", nonfinite_);
  restore_part("spikes", spikes_);
  forensics_.restore(state.loss_scales);
}

}  // namespace stretto::train
