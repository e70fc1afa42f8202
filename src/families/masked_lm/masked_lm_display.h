#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "families/text/score_keys.h"
#include "report/display.h"

namespace stretto::tasks {

/// The numbers of masked language models.
inline std::vector<experiment::ScoreSpec> masked_lm_scores() {
  return {
      {.style = report::loss_style(), .ranks = false},  // it is the nll
      nll_score(),
      ppl_score("of masked tokens"),
      {.style = {.name = score_key::kAccuracy,
                 .remark = "of masked tokens",
                 .progress = "accuracy",
                 .chart = "Accuracy of masked tokens",
                 .axis = report::Axis::kFromZero,
                 .tile = "Accuracy",
                 .column = "Accuracy",
                 .higher_is_better = true},
       .also_called = {"acc"},
       .noise = experiment::noise_of_share()},
  };
}

/// How numbers and samples of masked language models are told and drawn. No libtorch.
inline report::Display masked_lm_display() {
  report::Display display;
  display.numbers = experiment::styles_of(masked_lm_scores());
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real tokens, masked or not",
                  .batch = "tokens"};
  display.loss_unit = {.name = "masked tokens", .count = "masked_tokens"};
  display.samples = "Masked texts";
  return display;
}

}  // namespace stretto::tasks
