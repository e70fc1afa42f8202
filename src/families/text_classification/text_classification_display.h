#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "families/text/score_keys.h"
#include "families/text_classification/text_classification_options.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores that text_classification alone has.
namespace score_key {
inline constexpr const char *kMacroF1 = "macro_f1", *kMatthews = "matthews", *kPearson = "pearson",
                            *kSpearman = "spearman", *kMse = "mse";
}  // namespace score_key

/// Texts, each with its weight. Weights of a list, which may have any mean, are not counted.
inline report::LossUnit text_loss_unit(const experiment::TextClassificationOptions& options) {
  const bool weighted = options.loss.class_weights == "list" && !options.data.has_several_labels();
  if (weighted) return {.name = "weighted texts", .count = ""};
  return {.name = "texts", .count = "texts"};
}

/// The numbers of text_classification.
std::vector<experiment::ScoreSpec> text_classification_scores(
    const experiment::TextClassificationOptions& options);

/// How numbers and samples of text_classification are told and drawn; no libtorch.
inline report::Display text_classification_display(
    const experiment::TextClassificationOptions& options) {
  report::Display display;
  display.numbers = experiment::styles_of(text_classification_scores(options));
  display.rate = {.key = "tokens_per_second",
                  .unit = "tokens",
                  .short_unit = "tok",
                  .remark = "real tokens",
                  .batch = "tokens"};
  display.loss_unit = text_loss_unit(options);
  display.samples = options.data.is_regression() ? "The most wrong texts"
                                                 : "Confusion matrix and the most wrong texts";
  return display;
}

}  // namespace stretto::tasks
