#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/images/image_set.h"
#include "families/image_classification/image_classification_options.h"
#include "train/prepared.h"

/// From a batch of numbered pictures to the pixels that a model sees.
///
/// Shape letters: B samples, V views of each, S pixels of a side.
namespace stretto::tasks {

/// Columns behind those of data/images/image_batches.h, of batches that are mixed.
/// int64, 3 wide: the partner of a sample, as its id, its kImageDraw and its class.
inline constexpr size_t kImagePartner = 2;
/// float, 6 wide: image::MixKind, the share of the sample itself, and the box of the partner: top,
/// left, height, width.
inline constexpr size_t kImageMix = 3;

/// Batches with these columns, where `augment` mixes pictures. A plan belongs to a whole
/// micro-batch (image::mix_plan), and its parts keep it.
std::unique_ptr<data::BatchSource> mixed_images(std::unique_ptr<data::BatchSource> batches,
                                                const experiment::ImageClassificationOptions& own,
                                                uint64_t seed);

/// The tensors of a batch.
struct ImageTensors {
  at::Tensor pixels;    ///< fp32 [B * V, 3, S, S] in channels-last memory, normalised
  at::Tensor labels;    ///< int64 [B]; -1 for a picture that cannot be read, whose pixels are 0
  at::Tensor partners;  ///< int64 [B]: classes of those that were mixed in; undefined = none
  at::Tensor shares;    ///< fp32 [B]: of each sample itself in its mixture
  at::Tensor row_keys;  ///< int64 [B * rows]: of dropout masks; undefined = the model has none
};
ImageTensors image_tensors(const train::Prepared& batch);

/// Pictures as training shows them, by (seed, Batch::epoch, kImageDraw). The labels of those that
/// cannot be read become -1 in the batch, too.
/// @param rows_per_sample  rows of dropout masks of a picture; 0 = no masks
train::Prepared prepare_training_images(data::Batch batch, const data::ImageSet& set,
                                        const experiment::ImageClassificationOptions& own,
                                        uint64_t seed, int64_t rows_per_sample);

/// Pictures as validation and inference show them, V = image::num_test_views() views of each, one
/// behind the other.
train::Prepared prepare_test_images(data::Batch batch, const data::ImageSet& set,
                                    const experiment::ImageClassificationOptions& own);

/// Pixels of no picture: fp32 [count, 3, size, size] in channels-last memory.
at::Tensor empty_pixels(int64_t count, int64_t size);
/// Writes views of one picture behind each other: view `first + v` of `pixels`.
void write_test_views(const image::Image& decoded,
                      const experiment::ImageClassificationOptions& own, int64_t first,
                      const at::Tensor& pixels);

/// The samples of a batch that could be read.
double num_readable(const data::Batch& batch);

}  // namespace stretto::tasks
