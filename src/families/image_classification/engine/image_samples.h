#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_set.h"
#include "data/labelled/labels.h"
#include "families/image_classification/image_classification_options.h"
#include "image/image.h"
#include "report/sample.h"
#include "train/evaluation.h"

/// What the report shows of pictures and of a model.
namespace stretto::tasks {

/// A picture as a file for the report; small ones are enlarged, pixel by pixel.
report::MediaSample picture_sample(const image::Image& picture, std::string words);

/// Pictures of one size in rows side by side, with a margin between them. Empty for none.
image::Image sheet_of(const std::vector<image::Image>& pictures);

/// What the model sees: augmented pictures of training, [B, 3, S, S] as they are normalised.
report::MediaSample seen_sample(const at::Tensor& pixels,
                                const experiment::ImageClassificationOptions& own);

/// The filters of a first layer, [O, C, H, W], each from its lowest to its highest number.
report::MediaSample filter_sample(const at::Tensor& filters);

/// A confusion matrix of more than `most` classes: the part of those with the most mistakes, made
/// in them or by taking others for them. They stay in their order.
report::MatrixSample most_confused(report::MatrixSample matrix, size_t most = report::kMaxMatrix);

/// The confusion matrix, most_confused(), and the pictures whose loss is highest.
/// @param table  of score_images()
/// @param most   pictures, at most
std::vector<report::Sample> wrong_samples(const train::ScoreTable& table, const data::ImageSet& set,
                                          const data::Labels& classes,
                                          const experiment::ImageClassificationOptions& own,
                                          int64_t most);

}  // namespace stretto::tasks
