#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "families/text/score_keys.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores that question answering alone has.
namespace score_key {
inline constexpr const char *kExactMatch = "exact_match", *kSpanAccuracy = "span_accuracy";
}  // namespace score_key

/// The numbers of question answering.
inline std::vector<experiment::ScoreSpec> question_answering_scores() {
  using report::Axis;
  const auto style = [](const char* name, const char* label) {
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
  return {
      {.style = {.name = score_key::kLoss,
                 .remark = "mean of begin and end",
                 .progress = "loss",
                 .chart = "Loss",
                 .tile = "Loss",
                 .column = "Loss"},
       .also_called = {"valid_loss", "eval_loss", "nll"}},
      {.style = style(score_key::kF1, "F1"),
       .also_called = {"eval_f1"},
       .title = "F1",
       .noise = experiment::noise_of_share()},  // the mean of one F1 a question
      {.style = style(score_key::kExactMatch, "Exact match"),
       .also_called = {"em", "exact", "eval_exact_match"},
       .title = "exact match",
       .noise = experiment::noise_of_share()},
      {.style = {.name = score_key::kSpanAccuracy,
                 .label = "whole spans",
                 .remark = "begin and end right, of training windows",
                 .decimals = 3,
                 .chart = "Windows with begin and end right",
                 .axis = Axis::kFromZero,
                 .higher_is_better = true},
       .ranks = false},
  };
}

/// How numbers and samples of question answering are printed and drawn; needs no libtorch.
inline report::Display question_answering_display() {
  report::Display display;
  display.numbers = experiment::styles_of(question_answering_scores());
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
