#include "data/images/image_batches.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random.h"

namespace stretto::data {
namespace {

class ImageBatches final : public BatchSource {
 public:
  ImageBatches(std::vector<int32_t> labels, const ImageBatchOptions& options)
      : labels_(std::move(labels)),
        options_(options),
        repeats_(std::max<int64_t>(1, options.repeats)),
        different_(std::max<int64_t>(1, options.max_samples / repeats_)) {
    if (labels_.empty()) throw std::invalid_argument("image batches: there are no samples");
  }

  int64_t num_batches() const override {
    const int64_t of_epoch = pictures_of_epoch();
    const int64_t whole = of_epoch / different_;
    const bool has_rest = of_epoch % different_ != 0;
    return has_rest && (!options_.drop_last || whole == 0) ? whole + 1 : whole;
  }

  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch{.sample_ids = {}, .columns = {PackedTokens{}, PackedTokens{}}};
    const auto pictures = pictures_of(epoch, index);
    for (int64_t copy = 0; copy < repeats_; ++copy) {
      for (const int64_t sample : pictures) {
        batch.sample_ids.push_back(sample);
        batch.column<int64_t>(kImageLabel).append({labels_[static_cast<size_t>(sample)]});
        batch.column<int64_t>(kImageDraw).append({sample + copy * size()});
      }
    }
    return batch;
  }

  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    const auto pictures = pictures_of(epoch, index);
    std::vector<int64_t> ids;
    for (int64_t copy = 0; copy < repeats_; ++copy) {
      ids.insert(ids.end(), pictures.begin(), pictures.end());
    }
    return ids;
  }

 private:
  int64_t size() const { return std::ssize(labels_); }
  int64_t pictures_of_epoch() const { return (size() - 1) / repeats_ + 1; }

  /// The different pictures of a micro-batch. `repeats` epochs in a row share one shuffle, of which
  /// each has a part.
  std::vector<int64_t> pictures_of(int64_t epoch, int64_t index) const {
    if (index < 0 || index >= num_batches()) {
      throw std::out_of_range("batch " + std::to_string(index) + " of " +
                              std::to_string(num_batches()));
    }
    const int64_t of_epoch = pictures_of_epoch();
    const int64_t begin = index * different_, end = std::min(of_epoch, begin + different_);
    const int64_t first = epoch % repeats_ * of_epoch;
    const Permutation shuffled(static_cast<uint64_t>(size()),
                               mix64(options_.seed, static_cast<uint64_t>(epoch / repeats_)));
    std::vector<int64_t> pictures;
    for (int64_t i = begin; i < end; ++i) {
      const auto place = static_cast<uint64_t>((first + i) % size());
      pictures.push_back(
          static_cast<int64_t>(options_.shuffle == Shuffle::kEachEpoch ? shuffled(place) : place));
    }
    return pictures;
  }

  std::vector<int32_t> labels_;
  ImageBatchOptions options_;
  int64_t repeats_;
  int64_t different_;  ///< pictures of a micro-batch
};

}  // namespace

std::unique_ptr<BatchSource> make_image_batches(std::vector<int32_t> labels,
                                                const ImageBatchOptions& options) {
  return std::make_unique<ImageBatches>(std::move(labels), options);
}

}  // namespace stretto::data
