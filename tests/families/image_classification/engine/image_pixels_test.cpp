#include "families/image_classification/engine/image_pixels.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image_batches.h"
#include "data/images/image_table.h"
#include "image/mix.h"
#include "tests/families/image_classification/striped_pictures.h"

namespace stretto::tasks {
namespace {

constexpr uint64_t kSeed = 7;

class ImagePixelsTest : public ::testing::Test {
 protected:
  ImagePixelsTest() {
    testing::put_pictures(folder_, "train", 4);
    own_.data.train = {(folder_ / "train").string()};
    own_.data.cache_dir = (folder_ / "cache").string();
    own_.data.max_samples = 6;
    own_.augment.image_size = 16;
    own_.augment.crop = "pad";
    own_.augment.padding = 2;
  }

  const data::ImageSet& set() {
    if (!set_) {
      const auto table = data::open_images(own_.data, "data.train", own_.data.train);
      set_ = std::make_unique<data::ImageSet>(table, data::image_classes(own_.data, *table),
                                              data::bad_sample_rule(own_.data));
    }
    return *set_;
  }
  std::unique_ptr<data::BatchSource> batches() {
    return mixed_images(
        data::make_image_batches(set().labels(), {.max_samples = own_.data.max_samples,
                                                  .shuffle = data::Shuffle::kEachEpoch,
                                                  .seed = kSeed}),
        own_, kSeed);
  }
  ImageTensors tensors(data::Batch batch, int64_t rows = 0) {
    const auto made = prepare_training_images(std::move(batch), set(), own_, kSeed, rows);
    return image_tensors(made);
  }
  void skip_bad_pictures() {
    own_.data.bad_samples = "skip";
    set_.reset();
  }

  testing::TempDir folder_;
  experiment::ImageClassificationOptions own_;
  std::unique_ptr<data::ImageSet> set_;
};

TEST_F(ImagePixelsTest, PixelsAreChannelsLastAndNormalised) {
  const auto made = tensors(batches()->load_for_training(0, 0));
  EXPECT_EQ(made.pixels.sizes(), (std::vector<int64_t>{6, 3, 16, 16}));
  EXPECT_TRUE(made.pixels.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LT(made.pixels.abs().max().item<double>(), 3);
  EXPECT_FALSE(made.partners.defined());
  EXPECT_FALSE(made.row_keys.defined());
}

TEST_F(ImagePixelsTest, AugmentationIsOfTheEpochAndTheSample) {
  const data::Batch first = batches()->load_for_training(0, 0);
  EXPECT_TRUE(at::equal(tensors(first).pixels, tensors(first).pixels));
  data::Batch later = first;
  later.epoch = 1;
  EXPECT_FALSE(at::equal(tensors(later).pixels, tensors(first).pixels));
}

TEST_F(ImagePixelsTest, APartOfABatchHasThePixelsOfTheWhole) {
  const data::Batch whole = batches()->load_for_training(2, 1);
  EXPECT_TRUE(
      at::equal(tensors(data::part(whole, 2, 5)).pixels, tensors(whole).pixels.slice(0, 2, 5)));
}

TEST_F(ImagePixelsTest, SoHasAPartOfAMixedBatchWhosePartnersAreElsewhere) {
  for (const bool cuts : {false, true}) {
    own_.augment.mixup_alpha = cuts ? 0 : 1;
    own_.augment.cutmix_alpha = cuts ? 1 : 0;
    const data::Batch whole = batches()->load_for_training(2, 1);
    const auto all = tensors(whole), part = tensors(data::part(whole, 1, 3));
    EXPECT_TRUE(at::equal(part.pixels, all.pixels.slice(0, 1, 3)));
    EXPECT_TRUE(at::equal(part.partners, all.partners.slice(0, 1, 3)));
    EXPECT_TRUE(at::equal(part.shares, all.shares.slice(0, 1, 3)));
  }
}

TEST_F(ImagePixelsTest, AMixedBatchIsThatOfImageMix) {
  own_.augment.flip = "none";
  own_.augment.crop = "center";
  const data::Batch plain = batches()->load_for_training(3, 0);
  const at::Tensor unmixed = tensors(plain).pixels;
  for (const bool cuts : {false, true}) {
    own_.augment.mixup_alpha = cuts ? 0 : 1;
    own_.augment.cutmix_alpha = cuts ? 1 : 0;
    const auto mixed = tensors(batches()->load_for_training(3, 0));
    const auto plan = image::mix_plan(own_.augment, {.seed = kSeed, .epoch = 3, .batch = 0}, 6, 16);
    at::Tensor expected = unmixed.clone(at::MemoryFormat::ChannelsLast);
    image::mix(plan, 16, image::PixelLayout::kChannelsLast,
               {expected.mutable_data_ptr<float>(), static_cast<size_t>(expected.numel())});
    EXPECT_TRUE(at::allclose(mixed.pixels, expected, 1e-6, 1e-6));
    for (int64_t i = 0; i < 6; ++i) {
      const auto partner = static_cast<size_t>(plan.partners[static_cast<size_t>(i)]);
      EXPECT_EQ(mixed.partners[i].item<int64_t>(), plain.column<int64_t>(0).values[partner]);
      EXPECT_NEAR(mixed.shares[i].item<double>(), plan.share, 1e-6);
    }
  }
}

TEST_F(ImagePixelsTest, AnEpochMayHaveAnotherSize) {
  own_.augment.train_sizes = {"1 24"};
  EXPECT_EQ(tensors(batches()->load_for_training(0, 0)).pixels.size(2), 16);
  EXPECT_EQ(tensors(batches()->load_for_training(1, 0)).pixels.size(2), 24);
}

TEST_F(ImagePixelsTest, APictureThatVanishesKeepsItsPlaceWithoutALabel) {
  skip_bad_pictures();
  const data::Batch batch = batches()->load_for_training(0, 0);
  const auto lost = set().table().place(batch.sample_ids[2]);
  std::filesystem::remove(lost);
  const auto made = prepare_training_images(batch, set(), own_, kSeed, 0);
  EXPECT_EQ(num_readable(made), 5);
  EXPECT_EQ(image_tensors(made).labels[2].item<int64_t>(), -1);
  EXPECT_EQ(image_tensors(made).pixels[2].abs().max().item<double>(), 0);
}

TEST_F(ImagePixelsTest, NothingIsMixedWithAPictureThatVanished) {
  skip_bad_pictures();
  own_.augment.mixup_alpha = 1;
  const data::Batch batch = batches()->load_for_training(0, 0);
  std::filesystem::remove(set().table().place(batch.column<int64_t>(kImagePartner).sequence(3)[0]));
  EXPECT_EQ(tensors(batch).shares[3].item<double>(), 1);
}

TEST_F(ImagePixelsTest, KeysOfMasksAreThereWhereTheModelHasDropout) {
  EXPECT_EQ(tensors(batches()->load_for_training(0, 0), 5).row_keys.numel(), 30);
}

TEST_F(ImagePixelsTest, EvaluationHasAllViewsOfAPictureSideBySide) {
  own_.augment.test_flip = true;
  own_.augment.test_resize = {16};
  const auto source = data::make_image_batches(set().labels(), {.max_samples = 4});
  const auto made = prepare_test_images(source->load(0, 0), set(), own_);
  const at::Tensor pixels = made.tensor(0);
  ASSERT_EQ(pixels.size(0), 8);
  EXPECT_TRUE(at::equal(pixels[3], pixels[2].flip({2})));
}

}  // namespace
}  // namespace stretto::tasks
