#pragma once

#include "report/display.h"

namespace stretto::tasks {

/// How numbers and samples of question answering are told and drawn; needs no libtorch.
inline report::Display question_answering_display() {
  using report::Axis;
  report::Display display;
  const auto score = [](const char* name, const char* label) {
    return report::NumberStyle{.name = name,
                               .label = label,
                               .decimals = 1,
                               .chart = "Exact match and F1",
                               .axis = Axis::kFromZero,
                               .tile = label,
                               .column = label,
                               .column_decimals = 2,
                               .higher_is_better = true,
                               .of_validation = true};
  };
  display.numbers = {
      {.name = "loss",
       .remark = "mean of begin and end",
       .progress = "loss",
       .chart = "Loss",
       .tile = "Loss",
       .column = "Loss"},
      score("f1", "F1"),
      score("exact_match", "Exact match"),
      {.name = "span_accuracy",
       .label = "whole spans",
       .remark = "begin and end right, of training windows",
       .decimals = 3,
       .chart = "Windows with begin and end right",
       .axis = Axis::kFromZero,
       .higher_is_better = true},
  };
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real tokens",
                  .batch = "tokens"};
  display.loss_unit = {.name = "windows", .count = "windows"};
  display.samples = "Answers in their paragraphs";
  display.text_pair = {
      .input = "Paragraph", .output = "Answer", .reference = "Expected", .request = "Question"};
  return display;
}

}  // namespace stretto::tasks
