#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "report/display.h"

namespace stretto::tasks {

/// The numbers of labelling: keys, which way is better, and how they are told and drawn.
inline std::vector<experiment::ScoreSpec> label_scores() {
  return {{.style = report::loss_style()},
          {.style = {.name = "accuracy",
                     .decimals = 3,
                     .progress = "accuracy",
                     .chart = "Accuracy",
                     .axis = report::Axis::kFromZero,
                     .tile = "Accuracy",
                     .column = "Accuracy",
                     .higher_is_better = true},
           .also_called = {"acc"}}};
}

/// How numbers of labelling are told and drawn; needs no libtorch.
inline report::Display label_display() {
  report::Display display;
  display.numbers = experiment::styles_of(label_scores());
  display.rate = {
      .key = "lines_per_second", .unit = "lines", .short_unit = "lines", .batch = "lines"};
  display.loss_unit = {.name = "lines", .count = "lines"};
  return display;
}

}  // namespace stretto::tasks
