#pragma once

#include <algorithm>
#include <cstdint>

#include "config/field.h"

namespace stretto::report {

/// `[report]`: what people look at.
struct ReportOptions {
  int64_t every = 0;
  bool tensorboard = true;
  bool html = true;
  double html_seconds = 20;
  int64_t samples = 4;

  /// Updates between two `train` events of a run.
  ///
  /// Without report.every it is the least that leaves some 200 events to the run (200 to 399; all
  /// of its updates if they are fewer), and at most 100.
  /// @param updates  of the whole run; 0 = not known
  int64_t interval(int64_t updates) const {
    constexpr int64_t kEvents = 200, kRarest = 100;
    if (every > 0) return every;
    return updates > 0 ? std::clamp<int64_t>(updates / kEvents, 1, kRarest) : kRarest;
  }

  static auto fields() {
    using namespace config;
    using O = ReportOptions;
    const Meta page{.change = Change::kFree, .per_process = true};
    return Fields{
        field(&O::every, "every",
              "updates between `train` events of metrics.jsonl; the first update is always one. "
              "0 = as many as leave the run some 200 events, at most 100",
              at_least(0), {.unit = "updates", .change = Change::kFree})
            .also_called({"log_interval", "log_every", "logging_steps", "report_every", "disp_freq",
                          "log_steps", "print_every", "scheduling_unit"}),
        field(&O::tensorboard, "tensorboard", "write event files that TensorBoard reads", any(),
              page)
            .also_called(
                {"tensorboard_logdir", "tensorboard_log_dir", "report_to", "use_tensorboard"}),
        field(&O::html, "html", "write report.html", any(), page),
        field(&O::html_seconds, "html_seconds", "least time between two writings of report.html",
              at_least(0), {.unit = "seconds", .change = Change::kFree, .per_process = true}),
        field(&O::samples, "samples",
              "validation samples shown with what the model made of them, where validation runs it "
              "for a score",
              between(0, 50), {.unit = "samples", .change = Change::kFree}),
    };
  }
};

}  // namespace stretto::report
