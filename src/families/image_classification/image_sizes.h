#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "families/image_classification/image_classification_options.h"

/// How many pixels the sides of pictures have that a model sees.
namespace stretto::experiment {

/// An entry of `augment.train_sizes`.
struct TrainSize {
  int64_t epoch = 0;  ///< from which on, counted from 0
  int64_t size = 0;
};

/// The entries that can be read, in their order; `problem` is what is wrong with the first other
/// one, or with their order.
struct TrainSizes {
  std::vector<TrainSize> entries = {};
  std::string problem = {};
};
TrainSizes read_train_sizes(const std::vector<std::string>& texts);

/// `augment.image_size`, or what models of this kind are published with.
int64_t image_size_of(const ImageClassificationOptions& options);
/// In validation and inference.
int64_t test_size_of(const ImageClassificationOptions& options);
/// In an epoch of training. `augment.train_sizes` must be sound.
int64_t train_size_of(const ImageClassificationOptions& options, int64_t epoch);
/// All that training has, each once, in ascending order.
std::vector<int64_t> train_sizes_of(const ImageClassificationOptions& options);

}  // namespace stretto::experiment
