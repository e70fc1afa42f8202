#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/images/image_set.h"
#include "families/image_classification/image_classification_options.h"
#include "models/images/image_model.h"
#include "train/evaluation.h"
#include "train/task.h"

/// Shape letters: B samples, V views of each, L classes.
namespace stretto::tasks {

/// The numbers of a picture, as columns of a table. All are 0 for one that cannot be read.
enum ImageNumber : int64_t {
  kImageLoss = 0,
  kImageReadable,          ///< 1 or 0
  kImageRight,             ///< 1 where its class is the most probable one
  kImageInTop5,            ///< 1 where it is one of five
  kImageGuess,             ///< the most probable class
  kImageGuessProbability,  ///< and its probability
  kImageProbability,       ///< of its own class
  kImageOverflowed,        ///< 1 where some logit of some model is infinite or NaN
  kNumImageNumbers
};

/// Pictures in batches for evaluation.
struct ImageBatches {
  std::shared_ptr<const data::ImageSet> set;
  std::unique_ptr<data::BatchSource> batches;
};
ImageBatches image_batches(std::shared_ptr<const data::ImageSet> set,
                           const experiment::ImageClassificationOptions& own);

/// What models together make of views [B * V, 3, S, S]: the logarithm of the mean of their
/// probabilities, over views by image::test_weights().
struct ImageOutputs {
  at::Tensor logits;      ///< [B, L]; those of one model and one view as they are
  at::Tensor overflowed;  ///< fp64 [B] of 0 and 1
};
ImageOutputs image_outputs(const std::vector<std::shared_ptr<models::ImageModel>>& models,
                           const at::Tensor& pixels, const std::vector<double>& view_weights);

/// The numbers of a set, whose batches are shared out among processes (train/evaluation.h).
/// Collective.
train::ScoreTable score_images(const std::vector<std::shared_ptr<models::ImageModel>>& models,
                               const ImageBatches& batches,
                               const experiment::ImageClassificationOptions& own,
                               train::EvaluationSetup setup);

/// Scores as image_classification_scores() lists them, of the pictures that could be read.
std::vector<train::Score> scores_of_images(const train::ScoreTable& table);
/// The pictures of a set of this size that could not be read.
int64_t num_unreadable(const train::ScoreTable& table, int64_t size);

}  // namespace stretto::tasks
