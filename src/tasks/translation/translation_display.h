#pragma once

#include "losses/cross_entropy_options.h"
#include "report/display.h"

namespace stretto::tasks {

/// How numbers and samples of translation are told and drawn; needs no libtorch, since `stretto report`
/// draws a page without it.
inline report::Display translation_display(const losses::CrossEntropyOptions& loss) {
  using report::Axis;
  const std::string smoothing = loss.smoothing_words();
  const bool smoothed = !smoothing.empty();
  report::Display display;
  display.numbers = {
      {.name = "loss",
       .remark = smoothed ? "with " + smoothing : "",
       .progress = smoothed ? "smoothed loss" : "loss",
       .chart = "Loss",
       .tile = "Loss",
       .column = smoothed ? "Smoothed loss" : "Loss"},
      {.name = "nll", .column = "NLL"},
      {.name = "ppl",
       .remark = "exp of nll",
       .decimals = 2,
       .progress = "ppl",
       .chart = "Perplexity",
       .axis = Axis::kLogarithmic,
       .tile = "Perplexity",
       .column = "Perplexity",
       .column_decimals = 2,
       .exponential_of = "nll"},
      {.name = "bleu",
       .label = "BLEU",
       .decimals = 1,
       .chart = "BLEU",
       .axis = Axis::kFromZero,
       .tile = "BLEU",
       .column = "BLEU",
       .column_decimals = 2,
       .higher_is_better = true,
       .of_validation = true},
  };
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real target tokens",
                  .batch = "target_tokens"};
  if (smoothed) {
    display.note = "The loss is what training minimises, with " + smoothing +
                   ". NLL and perplexity are without it: perplexity is exp(NLL), not exp(loss).";
  }
  display.best_by = "nll";
  display.samples = "Sample translations";
  display.text_pair = {.input = "Source",
                       .output = "Translation",
                       .reference = "Reference",
                       .picture = "attention, translation by source"};
  return display;
}

}  // namespace stretto::tasks
