#include "train/forensics/nonfinite_policy.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stretto::train {

NonfiniteDecision NonfinitePolicy::failed(const FailedUpdate& update) {
  using Action = NonfiniteDecision::Action;
  // The loss scale acts on gradients alone, so a loss that is not finite is never its routine.
  const bool overflow = update.scaled && update.loss_finite;
  ++skips_in_a_row_;
  if (!overflow) ++failures_in_a_row_;
  NonfiniteDecision decision;
  if (options_.policy != "skip" && failures_in_a_row_ >= options_.stop_after) {
    const bool rolls_back = options_.policy == "rollback" && rollbacks_ < options_.max_rollbacks;
    decision.action = rolls_back ? Action::kRollback : Action::kStop;
  } else if (skips_in_a_row_ >= kSkipsBeforeStop) {
    decision.action = Action::kStop;
  }
  const bool routine = overflow && (!scale_found_ || skips_in_a_row_ <= kRoutineOverflows);
  const bool last_chance = decision.action != Action::kSkip;
  decision.examine = !examined_ && reports_ < options_.max_reports && (!routine || last_chance);
  if (decision.examine) {
    examined_ = true;
    ++reports_;
  }
  return decision;
}

void NonfinitePolicy::succeeded() {
  begin_again();
  scale_found_ = true;
}

void NonfinitePolicy::begin_again() {
  skips_in_a_row_ = 0;
  failures_in_a_row_ = 0;
  examined_ = false;
}

int64_t NonfinitePolicy::rollback_target(const RollbackChoice& choice) const {
  const auto& steps = choice.checkpoints;
  const auto end_of = [&](int64_t limit) { return std::ranges::upper_bound(steps, limit); };
  const auto good_end = end_of(choice.good_step);
  if (good_end == steps.begin()) return 0;
  const bool again = rollbacks_ > 0 &&
                     (choice.failed_step <= furthest_failure_ || *std::prev(good_end) <= back_at_);
  const auto end = again ? std::min(good_end, end_of(back_at_ - 1)) : good_end;
  return end == steps.begin() ? steps.front() : *std::prev(end);
}

void NonfinitePolicy::rolled_back(int64_t failed_step, int64_t to_step) {
  ++rollbacks_;
  furthest_failure_ = std::max(furthest_failure_, failed_step);
  back_at_ = to_step;
  begin_again();
}

double NonfinitePolicy::lr_factor() const {
  return std::pow(options_.rollback_lr_factor, static_cast<double>(rollbacks_));
}

Error NonfinitePolicy::stop_error(const NumericStop& stop) const {
  std::string what =
      "step " + with_thousands(stop.step) + ": the loss or a gradient was not finite";
  if (skips_in_a_row_ > 1) what += " in " + std::to_string(skips_in_a_row_) + " updates in a row";
  if (rollbacks_ > 0) {
    what += ", after " + counted(rollbacks_, "rollback") + " (learning rate times " +
            shortest(lr_factor()) + ")";
  }
  what += "; training stops";
  // Overflows that a scaler answers do not send a run back.
  return {ExitCode::kNumeric, what, advice(stop, failures_in_a_row_ >= options_.stop_after)};
}

Error NonfinitePolicy::stop_error(const Error& of_scaler, const NumericStop& stop) const {
  return {of_scaler.code(), of_scaler.what(), advice(stop, /*rollback_helps=*/false)};
}

std::string NonfinitePolicy::advice(const NumericStop& stop, bool rollback_helps) const {
  AdviceContext run = stop.run;
  run.rolls_back = options_.policy == "rollback";
  std::string advice = stop.scale.empty() ? "" : stop.scale + "; or ";
  advice += "try " + stabilising_settings(run) + "; " + place_of_other_values(run);
  if (rollback_helps) advice += rollback_instead(run);
  if (!stop.report.empty())
    advice += "; `stretto replay " + stop.report + "` runs the update again";
  return advice;
}

std::map<std::string, double> NonfinitePolicy::state() const {
  return {{"skips_in_a_row", static_cast<double>(skips_in_a_row_)},
          {"failures_in_a_row", static_cast<double>(failures_in_a_row_)},
          {"furthest_failure", static_cast<double>(furthest_failure_)},
          {"back_at", static_cast<double>(back_at_)},
          {"rollbacks", static_cast<double>(rollbacks_)},
          {"reports", static_cast<double>(reports_)},
          {"examined", examined_ ? 1.0 : 0.0},
          {"scale_found", scale_found_ ? 1.0 : 0.0}};
}

void NonfinitePolicy::restore(const std::map<std::string, double>& state) {
  const auto value = [&](const char* name) {
    const auto found = state.find(name);
    return found == state.end() ? 0.0 : found->second;
  };
  skips_in_a_row_ = static_cast<int64_t>(value("skips_in_a_row"));
  failures_in_a_row_ = static_cast<int64_t>(value("failures_in_a_row"));
  furthest_failure_ = static_cast<int64_t>(value("furthest_failure"));
  back_at_ = static_cast<int64_t>(value("back_at"));
  rollbacks_ = static_cast<int64_t>(value("rollbacks"));
  reports_ = static_cast<int64_t>(value("reports"));
  examined_ = value("examined") > 0;
  scale_found_ = value("scale_found") > 0;
}

}  // namespace stretto::train
