#include "image/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/random_streams.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

Region crop_of(int64_t height, int64_t width, int64_t sample, const CropOptions& options = {}) {
  auto random = streams::augmentation(1, 0, sample);
  return draw_crop(height, width, options, random);
}

TEST(ImageAugment, ACropHasAnAllowedAreaAndShape) {
  double least_area = 1, most_area = 0, least_ratio = 9, most_ratio = 0;
  for (int64_t sample = 0; sample < 2000; ++sample) {
    const Region crop = crop_of(300, 400, sample);
    ASSERT_GE(crop.top, 0);
    ASSERT_LE(crop.top + crop.height, 300);
    ASSERT_LE(crop.left + crop.width, 400);
    const double area = static_cast<double>(crop.height * crop.width) / (300 * 400);
    const double ratio = static_cast<double>(crop.width) / static_cast<double>(crop.height);
    least_area = std::min(least_area, area), most_area = std::max(most_area, area);
    least_ratio = std::min(least_ratio, ratio), most_ratio = std::max(most_ratio, ratio);
  }
  EXPECT_NEAR(least_area, 0.08, 0.01);
  EXPECT_NEAR(most_area, 1, 0.05);
  EXPECT_NEAR(least_ratio, 0.75, 0.02);
  EXPECT_NEAR(most_ratio, 4.0 / 3, 0.02);
}

TEST(ImageAugment, WhereNoShapeFitsTheMiddleIsTaken) {
  EXPECT_EQ(crop_of(10, 1000, 0), (Region{.top = 0, .left = 493, .height = 10, .width = 13}));
  EXPECT_EQ(crop_of(1000, 9, 0), (Region{.top = 494, .left = 0, .height = 12, .width = 9}));
  EXPECT_EQ(crop_of(1, 1, 0), (Region{.top = 0, .left = 0, .height = 1, .width = 1}));
}

TEST(ImageAugment, IsAFunctionOfSeedEpochAndSample) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t sample) {
    auto random = streams::augmentation(seed, epoch, sample);
    Image image = test::gradient(20, 20);
    jitter(image, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, random);
    return image.pixels;
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
}

TEST(ImageAugment, NoJitterChangesNothing) {
  auto random = streams::augmentation(1, 0, 0);
  Image image = test::speckled(5, 5);
  const auto before = image.pixels;
  jitter(image, {}, random);
  EXPECT_EQ(image.pixels, before);
}

TEST(ImageAugment, AWindowIsAnywhereInThePicture) {
  const Image image = make_image(10, 12);
  int64_t most_top = 0, most_left = 0, least_left = 99;
  for (int64_t sample = 0; sample < 300; ++sample) {
    auto random = streams::augmentation(1, 0, sample);
    const Region window = draw_window(image, 8, 8, random);
    most_top = std::max(most_top, window.top);
    most_left = std::max(most_left, window.left);
    least_left = std::min(least_left, window.left);
  }
  EXPECT_EQ(most_top, 2);
  EXPECT_EQ(most_left, 4);
  EXPECT_EQ(least_left, 0);
  auto random = streams::augmentation(1, 0, 0);
  EXPECT_THROW(draw_window(image, 11, 8, random), std::invalid_argument);
}

TEST(ImageAugment, FlipsAsOftenAsAsked) {
  int flips = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    auto random = streams::augmentation(1, 0, sample);
    flips += draw_flip(0.3, random) ? 1 : 0;
  }
  EXPECT_NEAR(flips, 300, 50);
}

TEST(ImageAugment, FlipsInTurn) {
  int first = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    const bool is_first = flips_in_turn(7, 0, sample);
    first += is_first ? 1 : 0;
    for (int64_t epoch = 1; epoch < 5; ++epoch) {
      EXPECT_EQ(flips_in_turn(7, epoch, sample), is_first == (epoch % 2 == 0));
    }
  }
  EXPECT_NEAR(first, 500, 60);
  int same = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    same += flips_in_turn(7, 0, sample) == flips_in_turn(8, 0, sample) ? 1 : 0;
  }
  EXPECT_NEAR(same, 500, 60) << "another seed begins with others";
}

TEST(ImageAugment, ErasesAnAllowedRectangle) {
  int found = 0;
  for (int64_t sample = 0; sample < 500; ++sample) {
    auto random = streams::augmentation(1, 0, sample);
    const auto region = draw_erasing(40, 50, {}, random);
    if (!region) continue;
    ++found;
    const double area = static_cast<double>(region->height * region->width) / (40 * 50);
    EXPECT_GT(area, 0.01);
    EXPECT_LT(area, 0.37);
    EXPECT_LT(region->height, 40);
    EXPECT_LT(region->width, 50);
    EXPECT_LE(region->top + region->height, 40);
    EXPECT_LE(region->left + region->width, 50);
  }
  EXPECT_GT(found, 480);
  auto random = streams::augmentation(1, 0, 0);
  EXPECT_FALSE(draw_erasing(1, 1, {}, random).has_value());
}

TEST(ImageAugment, LightLiesAlongTheColoursOfImageNet) {
  // The first component, which is mostly brightness, is by far the strongest.
  double squares = 0, difference = 0;
  for (int64_t sample = 0; sample < 2000; ++sample) {
    auto random = streams::augmentation(1, 0, sample);
    const auto light = draw_light(0.1, random);
    squares += light[0] * light[0];
    difference = std::max(difference, std::abs(light[0] - light[2]));
  }
  const double wanted =
      0.1 * std::sqrt(std::pow(0.2175 * 0.5675, 2) + std::pow(0.0188 * 0.7192, 2) +
                      std::pow(0.0045 * 0.4009, 2));
  EXPECT_NEAR(std::sqrt(squares / 2000), wanted, 0.001);
  EXPECT_LT(difference, 0.03);
  auto random = streams::augmentation(1, 0, 0);
  EXPECT_EQ(draw_light(0, random)[1], 0);
}

}  // namespace
}  // namespace stretto::image
