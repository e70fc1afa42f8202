#pragma once

#include "report/display.h"

namespace stretto::tasks {

/// How numbers of labelling are told and drawn; needs no libtorch.
inline report::Display label_display() {
  report::Display display;
  display.numbers = {report::loss_style(),
                     {.name = "accuracy",
                      .decimals = 3,
                      .progress = "accuracy",
                      .chart = "Accuracy",
                      .axis = report::Axis::kFromZero,
                      .tile = "Accuracy",
                      .column = "Accuracy",
                      .higher_is_better = true}};
  display.rate = {
      .key = "lines_per_second", .unit = "lines", .short_unit = "lines", .batch = "lines"};
  display.loss_unit = {.name = "lines", .count = "lines"};
  return display;
}

}  // namespace stretto::tasks
