#pragma once

#include <cstdint>

#include "config/field.h"

namespace stretto::report {

/// `[report]`: what people look at.
struct ReportOptions {
  int64_t every = 100;
  bool tensorboard = true;
  bool html = true;
  double html_seconds = 20;
  int64_t samples = 4;

  static auto fields() {
    using namespace config;
    using O = ReportOptions;
    const Meta page{.change = Change::kFree, .per_process = true};
    return Fields{
        field(&O::every, "every", "updates between `train` events of metrics.jsonl", at_least(1),
              {.unit = "updates", .change = Change::kFree})
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
