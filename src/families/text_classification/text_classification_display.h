#pragma once

#include "families/text_classification/text_classification_options.h"
#include "report/display.h"

namespace stretto::tasks {

/// Texts, each with its weight. Weights of a list, which may have any mean, are not counted.
inline report::LossUnit text_loss_unit(const experiment::TextClassificationOptions& options) {
  const bool weighted = options.loss.class_weights == "list" && !options.data.has_several_labels();
  if (weighted) return {.name = "weighted texts", .count = ""};
  return {.name = "texts", .count = "texts"};
}

/// How numbers and samples of text_classification are told and drawn; no libtorch.
inline report::Display text_classification_display(
    const experiment::TextClassificationOptions& options) {
  using report::Axis;
  const auto score = [](const char* name, const char* label, bool is_key_number) {
    return report::NumberStyle{.name = name,
                               .label = label,
                               .progress = is_key_number ? name : "",
                               .chart = "Scores",
                               .axis = Axis::kFromZero,
                               .tile = is_key_number ? label : "",
                               .column = label,
                               .higher_is_better = true,
                               .of_validation = true};
  };
  report::Display display;
  display.numbers = {
      {.name = "loss", .progress = "loss", .chart = "Loss", .tile = "Loss", .column = "Loss"}};
  if (options.data.is_regression()) {
    display.numbers.push_back(score("pearson", "Pearson", true));
    display.numbers.push_back(score("spearman", "Spearman", false));
    display.numbers.push_back({.name = "mse",
                               .label = "squared error",
                               .chart = "Mean squared error",
                               .axis = Axis::kFromZero,
                               .column = "Squared error",
                               .of_validation = true});
  } else {
    auto accuracy = score("accuracy", "Accuracy", true);
    accuracy.chart = "Accuracy";
    accuracy.of_validation = false;
    display.numbers.push_back(std::move(accuracy));
    display.numbers.push_back(score("f1", "F1", false));
    display.numbers.push_back(score("macro_f1", "Macro F1", false));
    display.numbers.push_back(score("matthews", "Matthews", false));
  }
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
