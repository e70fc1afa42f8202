#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::train {

/// `[train.forensics]`: what happens when a loss or gradient is not finite, or far from the usual.
struct ForensicsOptions {
  std::string policy = "skip";
  int64_t stop_after = 50;
  double rollback_lr_factor = 0.5;
  int64_t max_rollbacks = 3;
  int64_t max_reports = 3;
  double spike_zscore = 6;
  std::string spike_policy = "report";

  static auto fields() {
    using namespace config;
    using O = ForensicsOptions;
    return Fields{
        field(&O::policy, "policy",
              "an update with a non-finite loss or gradient is left out; 50 in a row always "
              "stop the run. skip: only they do. stop: stop_after in a row do too. rollback: "
              "stop_after in a row restore the last good checkpoint with a smaller learning "
              "rate",
              one_of({"skip", "stop", "rollback"}), {.change = Change::kFree})
            .also_called({"nan_policy", "on_nan"})
            .also_called({"terminate_on_nan"}, "= \"stop\"")
            .value_also_called("skip", {"ignore"})
            .value_also_called("stop", {"abort", "raise", "terminate", "error"})
            .value_also_called("rollback", {"restore", "restart"}),
        field(&O::stop_after, "stop_after",
              "left-out updates in a row until stop or rollback act; overflows that the loss "
              "scaler answers do not count",
              between(1, 50), {.unit = "updates", .change = Change::kFree})
            .read_with("policy", {"stop", "rollback"}),
        field(&O::rollback_lr_factor, "rollback_lr_factor",
              "each rollback multiplies the learning rate of all later updates by it",
              {.min = 0, .max = 1, .min_open = true, .choices = {}}, {.change = Change::kFree})
            .read_with("policy", {"rollback"}),
        field(&O::max_rollbacks, "max_rollbacks", "rollbacks of a run; one more stops it",
              at_least(0), {.change = Change::kFree})
            .read_with("policy", {"rollback"}),
        field(&O::max_reports, "max_reports",
              "reports of non-finite updates that a run writes to RUN/forensics/, each with the "
              "weights of that moment; 0 = none",
              at_least(0), {.change = Change::kFree}),
        field(&O::spike_zscore, "spike_zscore",
              "a loss or gradient norm so many standard deviations above its moving mean, in "
              "logarithms, is a spike; 0 = off",
              at_least(0))
            .also_called({"spike_threshold"}),
        field(&O::spike_policy, "spike_policy",
              "report: a spike is a line in the log. skip: an update with a spike of the loss "
              "or of the gradient norm is left out as well",
              one_of({"report", "skip"}))
            .value_also_called("report", {"warn", "log", "ignore"})
            .value_also_called("skip", {"drop"})
            .read_unless_zero("spike_zscore"),
    };
  }
};

}  // namespace stretto::train
