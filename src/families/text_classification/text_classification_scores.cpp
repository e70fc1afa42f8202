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
  return {.style = report::loss_style(), .also_called = {"valid_loss", "eval_loss", "nll"}};
}

std::vector<ScoreSpec> value_scores() {
  return {loss(),
          {.style = key_score(score_key::kPearson, "Pearson"),
           .also_called = {"pearsonr"},
           .title = "Pearson correlation",
           .noise = noise_beyond_share()},
          {.style = score(score_key::kSpearman, "Spearman"),
           .also_called = {"spearmanr"},
           .title = "Spearman correlation",
           .noise = noise_beyond_share()},
          {.style = {.name = score_key::kMse,
                     .label = "squared error",
                     .chart = "Mean squared error",
                     .axis = Axis::kFromZero,
                     .column = "Squared error",
                     .of_validation = true},
           .also_called = {"mean_squared_error"}}};
}

// Several labels of a text have no Matthews correlation.
std::vector<ScoreSpec> label_scores(bool has_several_labels) {
  auto accuracy = key_score(score_key::kAccuracy, "Accuracy");
  accuracy.chart = "Accuracy";
  accuracy.of_validation = false;
  return {loss(),
          {.style = std::move(accuracy),
           .also_called = {"acc", "eval_accuracy"},
           .noise = experiment::noise_of_share()},
          {.style = score(score_key::kF1, "F1"),
           .also_called = {"eval_f1"},
           .title = "F1",
           .noise = noise_beyond_share()},
          {.style = score(score_key::kMacroF1, "Macro F1"),
           .also_called = {"f1_macro"},
           .title = "macro F1",
           .noise = noise_beyond_share()},
          {.style = score(score_key::kMatthews, "Matthews"),
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
