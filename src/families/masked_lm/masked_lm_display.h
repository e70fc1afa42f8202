#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "report/display.h"

namespace stretto::tasks {

/// The numbers of masked language models.
inline std::vector<experiment::ScoreSpec> masked_lm_scores() {
  using report::Axis;
  return {
      {.style =
           {.name = "loss", .progress = "loss", .chart = "Loss", .tile = "Loss", .column = "Loss"},
       .ranks = false},  // it is the nll
      {.style = {.name = "nll", .column = "NLL"},
       .also_called = {"loss", "ce", "cross_entropy", "ppl", "perplexity", "valid_loss",
                       "eval_loss"}},
      {.style = {.name = "ppl",
                 .remark = "of masked tokens, exp of nll",
                 .decimals = 2,
                 .progress = "ppl",
                 .chart = "Perplexity of masked tokens",
                 .axis = Axis::kLogarithmic,
                 .tile = "Perplexity",
                 .column = "Perplexity",
                 .column_decimals = 2,
                 .exponential_of = "nll"},
       .ranks = false},
      {.style = {.name = "accuracy",
                 .remark = "of masked tokens",
                 .progress = "accuracy",
                 .chart = "Accuracy of masked tokens",
                 .axis = Axis::kFromZero,
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
