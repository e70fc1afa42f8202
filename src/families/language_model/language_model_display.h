#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "families/text/score_keys.h"
#include "report/display.h"

namespace stretto::tasks {

namespace score_key {
inline constexpr const char *kBitsPerByte = "bits_per_byte", *kWordPpl = "word_ppl";
}  // namespace score_key

/// The numbers of language models.
inline std::vector<experiment::ScoreSpec> language_model_scores() {
  return {
      {.style = report::loss_style(), .ranks = false},  // it is the nll, and what regularises
      nll_score(),
      ppl_score("of tokens"),
      {.style = {.name = score_key::kBitsPerByte,
                 .label = "bits per byte",
                 .remark = "of the file",
                 .chart = "Bits per byte",
                 .tile = "Bits per byte",
                 .column = "Bits per byte",
                 .of_validation = true},
       .also_called = {"bpb", "bpc", "bits_per_character", "val_bpb"},
       .title = "bits per byte"},
      {.style = {.name = score_key::kWordPpl,
                 .label = "word ppl",
                 .remark = "of words and ends",
                 .decimals = 2,
                 .chart = "Perplexity of words",
                 .axis = report::Axis::kLogarithmic,
                 .column = "Perplexity of words",
                 .column_decimals = 2,
                 .of_validation = true},
       .ranks = false,
       .also_called = {"word_perplexity"},
       .title = "perplexity of words"},
  };
}

/// How numbers of language models are told and drawn. No libtorch.
inline report::Display language_model_display() {
  report::Display display;
  display.numbers = experiment::styles_of(language_model_scores());
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "predicted ones",
                  .batch = "tokens"};
  display.samples = "Continued texts";
  display.loss_unit = {.name = "tokens", .count = "tokens"};
  return display;
}

}  // namespace stretto::tasks
