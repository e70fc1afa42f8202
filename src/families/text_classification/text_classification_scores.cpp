#include <utility>

#include "families/text_classification/text_classification_display.h"

namespace stretto::tasks {
namespace {

using experiment::noise_beyond_share;
using experiment::ScoreSpec;
using report::Axis;

report::NumberStyle score(const char* name, const char* label) {
  return {.name = name,
          .label = label,
          .chart = "Scores",
          .axis = Axis::kFromZero,
          .column = label,
          .higher_is_better = true,
          .of_validation = true};
}

report::NumberStyle key_score(const char* name, const char* label) {
  report::NumberStyle style = score(name, label);
  style.progress = name;
  style.tile = label;
  return style;
}

// Before any other, as it is shown.
ScoreSpec loss() {
  return {.style = {.name = "loss",
                    .progress = "loss",
                    .chart = "Loss",
                    .tile = "Loss",
                    .column = "Loss"},
          .also_called = {"valid_loss", "eval_loss", "nll"}};
}

std::vector<ScoreSpec> value_scores() {
  return {loss(),
          {.style = key_score("pearson", "Pearson"),
           .also_called = {"pearsonr"},
           .title = "Pearson correlation",
           .noise = noise_beyond_share()},
          {.style = score("spearman", "Spearman"),
           .also_called = {"spearmanr"},
           .title = "Spearman correlation",
           .noise = noise_beyond_share()},
          {.style = {.name = "mse",
                     .label = "squared error",
                     .chart = "Mean squared error",
                     .axis = Axis::kFromZero,
                     .column = "Squared error",
                     .of_validation = true},
           .also_called = {"mean_squared_error"}}};
}

// Several labels of a text have no Matthews correlation.
std::vector<ScoreSpec> label_scores(bool has_several_labels) {
  auto accuracy = key_score("accuracy", "Accuracy");
  accuracy.chart = "Accuracy";
  accuracy.of_validation = false;
  return {loss(),
          {.style = std::move(accuracy),
           .also_called = {"acc", "eval_accuracy"},
           .noise = experiment::noise_of_share()},
          {.style = score("f1", "F1"),
           .also_called = {"eval_f1"},
           .title = "F1",
           .noise = noise_beyond_share()},
          {.style = score("macro_f1", "Macro F1"),
           .also_called = {"f1_macro"},
           .title = "macro F1",
           .noise = noise_beyond_share()},
          {.style = score("matthews", "Matthews"),
           .ranks = !has_several_labels,
           .also_called = {"mcc", "matthews_correlation"},
           .title = "Matthews correlation",
           .noise = noise_beyond_share()}};
}

}  // namespace

std::vector<ScoreSpec> text_classification_scores(
    const experiment::TextClassificationOptions& options) {
  return options.data.is_regression() ? value_scores()
                                      : label_scores(options.data.has_several_labels());
}

}  // namespace stretto::tasks
