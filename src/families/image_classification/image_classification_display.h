#pragma once

#include <vector>

#include "experiment/score_spec.h"
#include "report/display.h"

namespace stretto::tasks {

/// Keys of scores of image_classification.
namespace image_score {
inline constexpr const char *kLoss = "loss", *kAccuracy = "accuracy", *kTop5 = "top5";
}  // namespace image_score

/// The names of its counters (train::Task::counters); as keys they have `_` for spaces.
inline constexpr const char *kPictures = "pictures", *kUnreadablePictures = "unreadable pictures";

/// The numbers of image_classification.
std::vector<experiment::ScoreSpec> image_classification_scores();

/// How its numbers and samples are told and drawn; no libtorch.
report::Display image_classification_display();

}  // namespace stretto::tasks
