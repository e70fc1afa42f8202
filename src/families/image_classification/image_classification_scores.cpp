#include "families/image_classification/image_classification_display.h"

namespace stretto::tasks {

std::vector<experiment::ScoreSpec> image_classification_scores() {
  return {{.style = report::loss_style(), .also_called = {"valid_loss", "eval_loss", "nll"}},
          {.style = {.name = image_score::kAccuracy,
                     .label = "Accuracy",
                     .progress = image_score::kAccuracy,
                     .chart = "Accuracy",
                     .axis = report::Axis::kFromZero,
                     .tile = "Accuracy",
                     .column = "Accuracy",
                     .higher_is_better = true,
                     .error = "Top-1 error"},
           .also_called = {"acc", "top1", "acc1", "eval_accuracy", "eval_top1"},
           .noise = experiment::noise_of_share()},
          {.style = {.name = image_score::kTop5,
                     .label = "Top 5",
                     .chart = "Accuracy",
                     .axis = report::Axis::kFromZero,
                     .column = "Top 5",
                     .higher_is_better = true,
                     .of_validation = true},
           .also_called = {"acc5", "top_5", "eval_top5"},
           .title = "top-5 accuracy",
           .noise = experiment::noise_of_share()}};
}

report::Display image_classification_display() {
  report::Display display;
  display.numbers = experiment::styles_of(image_classification_scores());
  display.rate = {
      .key = "pictures_per_second", .unit = kPictures, .short_unit = "pic", .batch = kPictures};
  display.loss_unit = {.name = kPictures, .count = kPictures};
  display.samples = "What the model sees, and the most wrong pictures";
  return display;
}

}  // namespace stretto::tasks
