#include "families/image_classification/engine/image_pixels.h"

#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "data/images/image_batches.h"
#include "families/image_classification/image_sizes.h"
#include "image/mix.h"
#include "image/transform.h"
#include "image/views.h"
#include "models/images/image_model.h"

namespace stretto::tasks {
namespace {

using data::kImageDraw, data::kImageLabel;
using experiment::ImageClassificationOptions;

constexpr int64_t kPartnerWidth = 3, kMixWidth = 6;

/// Adds the plan of each micro-batch.
class MixedImages final : public data::BatchSource {
 public:
  MixedImages(std::unique_ptr<data::BatchSource> batches, const ImageClassificationOptions& own,
              uint64_t seed)
      : batches_(std::move(batches)), own_(own), seed_(seed) {}

  int64_t num_batches() const override { return batches_->num_batches(); }
  data::Batch load(int64_t epoch, int64_t index) const override {
    return planned(batches_->load(epoch, index), epoch, index);
  }
  data::Batch load_for_training(int64_t epoch, int64_t index) const override {
    return planned(batches_->load_for_training(epoch, index), epoch, index);
  }
  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    return batches_->sample_ids(epoch, index);
  }

 private:
  data::Batch planned(data::Batch batch, int64_t epoch, int64_t index) const {
    const int64_t count = batch.num_sequences();
    const auto plan = image::mix_plan(own_.augment, {.seed = seed_, .epoch = epoch, .batch = index},
                                      count, experiment::train_size_of(own_, epoch));
    const auto& labels = batch.column<int64_t>(kImageLabel).values;
    const auto& draws = batch.column<int64_t>(kImageDraw).values;
    data::PackedTokens partners;
    data::Ragged<float> mixes;
    partners.width = kPartnerWidth;
    mixes.width = kMixWidth;
    const auto& box = plan.box;
    const std::vector<float> mix{static_cast<float>(plan.kind),  static_cast<float>(plan.share),
                                 static_cast<float>(box.top),    static_cast<float>(box.left),
                                 static_cast<float>(box.height), static_cast<float>(box.width)};
    for (int64_t i = 0; i < count; ++i) {
      const bool is_mixed = plan.kind != image::MixKind::kNone;
      const auto partner =
          static_cast<size_t>(is_mixed ? plan.partners[static_cast<size_t>(i)] : i);
      partners.append({batch.sample_ids[partner], draws[partner], labels[partner]});
      mixes.append(mix);
    }
    batch.columns.emplace_back(std::move(partners));
    batch.columns.emplace_back(std::move(mixes));
    return batch;
  }

  const std::unique_ptr<data::BatchSource> batches_;
  const ImageClassificationOptions own_;
  const uint64_t seed_;
};

std::span<float> picture_at(const at::Tensor& pixels, int64_t number) {
  const int64_t size = pixels.stride(0);
  return {pixels.mutable_data_ptr<float>() + number * size, static_cast<size_t>(size)};
}

/// A picture as it is drawn: in its own place, or as the partner of others.
struct Drawn {
  int64_t sample = 0, draw = 0;
  auto operator<=>(const Drawn&) const = default;
};

/// The pictures of a batch, and behind them partners that are not in this part of it.
class TrainingPictures {
 public:
  TrainingPictures(const data::Batch& batch, const data::ImageSet& set,
                   const ImageClassificationOptions& own, uint64_t seed)
      : set_(set), own_(own), seed_(seed), epoch_(batch.epoch) {
    const auto& draws = batch.column<int64_t>(kImageDraw).values;
    for (size_t i = 0; i < batch.sample_ids.size(); ++i) {
      wanted_.push_back({.sample = batch.sample_ids[i], .draw = draws[i]});
      places_.emplace(wanted_.back(), static_cast<int64_t>(i));
    }
  }

  /// Where a partner is; one that is not in the batch joins it.
  int64_t place_of(const Drawn& partner) {
    const auto [place, is_new] = places_.emplace(partner, std::ssize(wanted_));
    if (is_new) wanted_.push_back(partner);
    return place->second;
  }

  /// [pictures, 3, S, S]; is_readable() is known afterwards.
  at::Tensor draw() {
    const int64_t size = experiment::train_size_of(own_, epoch_);
    at::Tensor pixels = empty_pixels(std::ssize(wanted_), size);
    readable_.assign(wanted_.size(), 0);
    for (int64_t i = 0; i < std::ssize(wanted_); ++i) {
      const auto& [sample, draw] = wanted_[static_cast<size_t>(i)];
      image::TrainingView view(own_.augment, {.seed = seed_, .epoch = epoch_, .sample = draw},
                               size);
      const auto decoded = set_.load(sample, view.decode_options());
      if (!decoded) continue;
      readable_[static_cast<size_t>(i)] = 1;
      view.write(view.shown(*decoded), image::PixelLayout::kChannelsLast, picture_at(pixels, i));
    }
    return pixels;
  }

  bool is_readable(int64_t place) const { return readable_[static_cast<size_t>(place)] != 0; }

 private:
  const data::ImageSet& set_;
  const ImageClassificationOptions& own_;
  const uint64_t seed_;
  const int64_t epoch_;
  std::vector<Drawn> wanted_;
  std::map<Drawn, int64_t> places_;
  std::vector<char> readable_;
};

// How one sample is mixed.
struct Mix {
  image::MixKind kind = image::MixKind::kNone;
  float share = 1;
  image::Region box = {};
};

Mix mix_of(const data::Batch& batch, int64_t i) {
  const auto numbers = batch.column<float>(kImageMix).sequence(i);
  const auto whole = [&](size_t at) { return static_cast<int64_t>(numbers[at]); };
  return {.kind = static_cast<image::MixKind>(whole(0)),
          .share = numbers[1],
          .box = {.top = whole(2), .left = whole(3), .height = whole(4), .width = whole(5)}};
}

// One picture of `mixed`, from those that were drawn.
void mix_into(const at::Tensor& mixed, const at::Tensor& own, const at::Tensor& partner,
              const Mix& mix) {
  if (mix.kind == image::MixKind::kMixup) {
    mixed.copy_(own * mix.share + partner * (1 - mix.share));
    return;
  }
  mixed.copy_(own);
  const auto& box = mix.box;
  const auto within = [&](const at::Tensor& picture) {
    return picture.slice(1, box.top, box.top + box.height).slice(2, box.left, box.left + box.width);
  };
  within(mixed).copy_(within(partner));
}

bool is_mixed(const data::Batch& batch) {
  return batch.columns.size() > kImageMix;
}

at::Tensor int64_tensor(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

}  // namespace

std::unique_ptr<data::BatchSource> mixed_images(std::unique_ptr<data::BatchSource> batches,
                                                const ImageClassificationOptions& own,
                                                uint64_t seed) {
  if (!own.augment.mixes()) return batches;
  return std::make_unique<MixedImages>(std::move(batches), own, seed);
}

ImageTensors image_tensors(const train::Prepared& batch) {
  ImageTensors tensors{.pixels = batch.tensor(0), .labels = batch.tensor(1)};
  size_t next = 2;
  const auto& of_batch = batch.batch();
  if (is_mixed(of_batch)) {
    tensors.partners = batch.tensor(next++);
    tensors.shares = batch.tensor(next++);
  }
  if (batch.num_tensors() > next) tensors.row_keys = batch.tensor(next);
  return tensors;
}

train::Prepared prepare_training_images(data::Batch batch, const data::ImageSet& set,
                                        const ImageClassificationOptions& own, uint64_t seed,
                                        int64_t rows_per_sample) {
  const int64_t count = batch.num_sequences();
  TrainingPictures pictures(batch, set, own, seed);
  std::vector<int64_t> places, partner_labels;
  std::vector<float> shares;
  if (is_mixed(batch)) {
    const auto& partners = batch.column<int64_t>(kImagePartner);
    for (int64_t i = 0; i < count; ++i) {
      const auto partner = partners.sequence(i);
      const bool mixes = mix_of(batch, i).kind != image::MixKind::kNone;
      places.push_back(mixes ? pictures.place_of({.sample = partner[0], .draw = partner[1]}) : i);
    }
  }
  const at::Tensor drawn = pictures.draw();
  at::Tensor pixels = drawn;
  auto& labels = batch.column<int64_t>(kImageLabel).values;
  for (int64_t i = 0; i < count; ++i) {
    if (!pictures.is_readable(i)) labels[static_cast<size_t>(i)] = -1;
  }
  if (is_mixed(batch)) {
    pixels = empty_pixels(count, drawn.size(2));
    for (int64_t i = 0; i < count; ++i) {
      Mix mix = mix_of(batch, i);
      const int64_t partner = places[static_cast<size_t>(i)];
      if (!pictures.is_readable(i) || !pictures.is_readable(partner)) mix = {};
      mix_into(pixels[i], drawn[i], drawn[partner], mix);
      shares.push_back(mix.share);
      partner_labels.push_back(batch.column<int64_t>(kImagePartner).sequence(i)[2]);
    }
  }
  train::Prepared made(std::move(batch));
  made.add(pixels);
  made.add(made.column(kImageLabel));
  if (is_mixed(made)) {
    made.add(int64_tensor(partner_labels));
    made.add(at::tensor(shares, at::kFloat));
  }
  if (rows_per_sample > 0) {
    const auto& draws = made.batch().column<int64_t>(kImageDraw).values;
    made.add(models::image_row_keys(draws, rows_per_sample, at::kCPU));
  }
  return made;
}

at::Tensor empty_pixels(int64_t count, int64_t size) {
  return at::empty({count, image::kChannels, size, size}, at::kFloat,
                   at::MemoryFormat::ChannelsLast)
      .zero_();
}

void write_test_views(const image::Image& decoded, const ImageClassificationOptions& own,
                      int64_t first, const at::Tensor& pixels) {
  const auto statistics = own.augment.statistics();
  for (const auto& view : image::test_views(decoded, own.augment, pixels.size(2))) {
    image::normalise(view, statistics, picture_at(pixels, first++), {0, 0, 0},
                     image::PixelLayout::kChannelsLast);
  }
}

train::Prepared prepare_test_images(data::Batch batch, const data::ImageSet& set,
                                    const ImageClassificationOptions& own) {
  const int64_t num_views = image::num_test_views(own.augment);
  const at::Tensor pixels =
      empty_pixels(batch.num_sequences() * num_views, experiment::test_size_of(own));
  auto& labels = batch.column<int64_t>(kImageLabel).values;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto decoded =
        set.load(batch.sample_ids[static_cast<size_t>(i)], image::test_decode_options(own.augment));
    if (decoded) {
      write_test_views(*decoded, own, i * num_views, pixels);
    } else {
      labels[static_cast<size_t>(i)] = -1;
    }
  }
  train::Prepared made(std::move(batch));
  made.add(pixels);
  made.add(made.column(kImageLabel));
  return made;
}

double num_readable(const data::Batch& batch) {
  const auto& labels = batch.column<int64_t>(kImageLabel).values;
  return static_cast<double>(
      std::ranges::count_if(labels, [](int64_t label) { return label >= 0; }));
}

}  // namespace stretto::tasks
