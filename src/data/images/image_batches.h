#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/length_batches.h"

namespace stretto::data {

/// The columns of a batch of pictures, one row a sample. Pixels are made of its ids where the batch
/// is prepared (ImageSet::load).
inline constexpr size_t kImageLabel = 0;  ///< int64: the number of the class
/// int64: with the seed and Batch::epoch, what the augmentation of this picture is drawn from. It
/// is the id of the sample; of its further copies in a micro-batch another number (`repeats`).
inline constexpr size_t kImageDraw = 1;

struct ImageBatchOptions {
  int64_t max_samples = 64;
  bool drop_last = false;  ///< never leaves out the only micro-batch
  int64_t repeats = 1;
  Shuffle shuffle = Shuffle::kNo;
  uint64_t seed = 0;
};

/// Micro-batches of pictures, each a function of (seed, epoch, index): one shuffle of all pictures
/// an epoch, cut into micro-batches of equal size, of which the last may be smaller.
///
/// With repeats = m a micro-batch has m copies of max_samples / m different pictures (rounded down,
/// at least 1): first all of them once, then all of them again. An epoch is as long as without: it
/// shows one m-th of the pictures, and m epochs in a row show all (Hoffer et al. 2020, "Augment
/// your batch"; epochs as long as those of timm's RepeatAugSampler).
///
/// @param labels  of the samples, whose ids are 0, 1, …
/// Throws std::invalid_argument without samples.
std::unique_ptr<BatchSource> make_image_batches(std::vector<int32_t> labels,
                                                const ImageBatchOptions& options);

}  // namespace stretto::data
