#pragma once

#include "report/display.h"

namespace stretto::tasks {

/// How numbers and samples of masked language models are told and drawn. No libtorch.
inline report::Display masked_lm_display() {
  using report::Axis;
  report::Display display;
  display.numbers = {
      {.name = "loss", .progress = "loss", .chart = "Loss", .tile = "Loss", .column = "Loss"},
      {.name = "nll", .column = "NLL"},
      {.name = "ppl",
       .remark = "of masked tokens, exp of nll",
       .decimals = 2,
       .progress = "ppl",
       .chart = "Perplexity of masked tokens",
       .axis = Axis::kLogarithmic,
       .tile = "Perplexity",
       .column = "Perplexity",
       .column_decimals = 2,
       .exponential_of = "nll"},
      {.name = "accuracy",
       .remark = "of masked tokens",
       .progress = "accuracy",
       .chart = "Accuracy of masked tokens",
       .axis = Axis::kFromZero,
       .tile = "Accuracy",
       .column = "Accuracy",
       .higher_is_better = true},
  };
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
