#pragma once

#include <string>
#include <vector>

#include "losses/cross_entropy_options.h"
#include "report/display.h"

namespace stretto::tasks {

/// How numbers and samples of translation are told and drawn; needs no libtorch, since `stretto
/// report` draws a page without it.
///
/// @param heads  names of several decoders, whose numbers stand beside those of all
inline report::Display translation_display(const losses::CrossEntropyOptions& loss,
                                           const std::vector<std::string>& heads = {}) {
  using report::Axis;
  const std::string smoothing = loss.smoothing_words(), beside = loss.training_words();
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
       .remark = heads.empty() ? "" : "mean over heads",
       .decimals = 1,
       .chart = "BLEU",
       .axis = Axis::kFromZero,
       .tile = "BLEU",
       .column = "BLEU",
       .column_decimals = 2,
       .higher_is_better = true,
       .of_validation = true},
  };
  for (const std::string& head : heads) {
    // One chart has the curves of all heads.
    display.numbers.push_back({.name = head + ".loss", .chart = "Losses of heads, weighted"});
    display.numbers.push_back({.name = head + ".nll", .chart = "NLL of heads"});
    display.numbers.push_back(
        {.name = head + ".ppl", .decimals = 2, .exponential_of = head + ".nll"});
    display.numbers.push_back({.name = head + ".bleu",
                               .decimals = 1,
                               .chart = "BLEU of heads",
                               .axis = Axis::kFromZero,
                               .column = head + " BLEU",
                               .column_decimals = 2,
                               .higher_is_better = true,
                               .of_validation = true});
  }
  if (loss.has_r_drop()) {
    display.numbers.push_back({.name = "kl",
                               .label = "KL",
                               .remark = "distance of the two passes",
                               .chart = "KL divergence of the two passes",
                               .axis = Axis::kFromZero});
  }
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real target tokens",
                  .batch = "target_tokens"};
  display.loss_unit = {.name = "target tokens", .count = "target_tokens"};
  if (!beside.empty()) {
    display.note = "The loss is what training minimises, with " + beside +
                   ". NLL and perplexity are without it: perplexity is exp(NLL), not exp(loss).";
  }
  if (loss.has_r_drop()) {
    display.note +=
        " R-Drop is in the loss of training alone. There NLL is the mean of two passes, and KL is "
        "the mean of their divergences in both directions, per target token.";
  }
  display.samples = "Sample translations";
  display.text_pair = {.input = "Source",
                       .output = "Translation",
                       .reference = "Reference",
                       .picture = "attention, translation by source"};
  return display;
}

}  // namespace stretto::tasks
