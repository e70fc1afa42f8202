#include "image/views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "image/augment.h"
#include "image/resize.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using Bytes = std::vector<uint8_t>;

AugmentOptions plain_options(const std::string& crop) {
  AugmentOptions options;
  options.crop = crop;
  options.flip = "none";
  return options;
}

Image shown_of(const std::string& bytes, const AugmentOptions& options, const AugmentKey& key,
               int64_t side) {
  TrainingView view(options, key, side);
  return view.shown(decode_image(bytes, "a", view.decode_options()));
}

Image shown_of(const Image& image, const AugmentOptions& options, const AugmentKey& key,
               int64_t side) {
  return TrainingView(options, key, side).shown(image);
}

TEST(Views, AViewIsAFunctionOfSeedEpochAndSample) {
  AugmentOptions options;
  options.brightness = options.hue = 0.2;
  options.auto_augment = "trivialaugment";
  options.lighting = 0.1;
  options.erasing_probability = 1;
  const Image image = test::gradient(50, 70);
  const auto pixels_of = [&](const AugmentKey& key) {
    const TrainingView view(options, key, 24);
    std::vector<float> pixels(3 * 24 * 24);
    view.write(view.shown(image), PixelLayout::kPlanes, pixels);
    return pixels;
  };
  const AugmentKey key{.seed = 1, .epoch = 2, .sample = 3};
  EXPECT_EQ(pixels_of(key), pixels_of(key));
  EXPECT_NE(pixels_of(key), pixels_of({.seed = 2, .epoch = 2, .sample = 3}));
  EXPECT_NE(pixels_of(key), pixels_of({.seed = 1, .epoch = 3, .sample = 3}));
  EXPECT_NE(pixels_of(key), pixels_of({.seed = 1, .epoch = 2, .sample = 4}));
}

TEST(Views, AStepLeavesTheOthersAsTheyAre) {
  const Image image = test::speckled(50, 70);
  const AugmentOptions plain = plain_options("random_resized");
  AugmentOptions mirrored = plain;
  mirrored.flip = "random";
  mirrored.flip_probability = 1;
  for (int64_t sample = 0; sample < 5; ++sample) {
    const AugmentKey key{.sample = sample};
    EXPECT_EQ(shown_of(image, mirrored, key, 16).pixels,
              flipped(shown_of(image, plain, key, 16)).pixels);
  }
}

TEST(Views, DecodingRowsAloneShowsTheSamePixels) {
  const auto bytes = test::jpeg_of(test::jpeg_picture(test::speckled(90, 70)));
  AugmentOptions whole, rows;
  whole.decoding = "full";
  rows.decoding = "rows";
  for (int64_t sample = 0; sample < 30; ++sample) {
    const AugmentKey key{.seed = 5, .sample = sample};
    EXPECT_EQ(shown_of(bytes, whole, key, 20).pixels, shown_of(bytes, rows, key, 20).pixels)
        << sample;
  }
}

TEST(Views, ScaledDecodingShowsNearlyTheSame) {
  const auto bytes = test::jpeg_of(test::jpeg_picture(test::gradient(401, 299)));
  AugmentOptions whole = plain_options("random_resized"), scaled = whole;
  whole.decoding = "full";
  scaled.decoding = "scaled";
  int differing = 0;
  for (int64_t sample = 0; sample < 20; ++sample) {
    const AugmentKey key{.seed = 5, .sample = sample};
    const Image a = shown_of(bytes, whole, key, 24), b = shown_of(bytes, scaled, key, 24);
    differing += a.pixels == b.pixels ? 0 : 1;
    for (size_t i = 0; i < a.pixels.size(); ++i) ASSERT_NEAR(a.pixels[i], b.pixels[i], 16) << i;
  }
  EXPECT_GT(differing, 10);
}

TEST(Views, NothingOfAScaledPartIsBlack) {
  Image white = make_image(401, 299);
  white.pixels.assign(white.pixels.size(), 255);
  const auto bytes = test::jpeg_of(test::jpeg_picture(white));
  AugmentOptions options = plain_options("random_resized");
  options.decoding = "scaled";
  for (int64_t sample = 0; sample < 100; ++sample) {
    const Image shown = shown_of(bytes, options, {.sample = sample}, 30);
    ASSERT_GE(*std::min_element(shown.pixels.begin(), shown.pixels.end()), 250) << sample;
  }
}

TEST(Views, APaddedPictureMovesByItsMarginAtMost) {
  const Image image = test::speckled(8, 8);
  std::set<Bytes> seen;
  for (const std::string mode : {"reflect", "zero"}) {
    AugmentOptions options = plain_options("pad");
    options.padding = 1;
    options.padding_mode = mode;
    seen.clear();
    const Image wide = mode == "zero" ? padded(image, 1) : padded_by_reflection(image, 1);
    std::set<Bytes> possible;
    for (const int64_t top : {0, 1, 2}) {
      for (const int64_t left : {0, 1, 2}) {
        possible.insert(cropped(wide, {.top = top, .left = left, .height = 8, .width = 8}).pixels);
      }
    }
    for (int64_t sample = 0; sample < 200; ++sample) {
      seen.insert(shown_of(image, options, {.sample = sample}, 8).pixels);
    }
    EXPECT_EQ(seen, possible) << mode;
  }
  EXPECT_EQ(shown_of(test::speckled(30, 40), plain_options("pad"), {}, 8).width, 8)
      << "others are resized first";
}

TEST(Views, OtherPartsAreTheMiddleOrTheWhole) {
  const Image image = test::speckled(40, 60);
  AugmentOptions options = plain_options("center");
  options.test_resize = {20};
  const Image small = resized(image, 20, 30);
  EXPECT_EQ(shown_of(image, options, {}, 16).pixels,
            cropped(small, centre_of(small, 16, 16)).pixels);
  options.crop = "squash";
  EXPECT_EQ(shown_of(image, options, {}, 16).pixels, resized(image, 16, 16).pixels);
  options.crop = "random";
  std::set<Bytes> seen;
  for (int64_t sample = 0; sample < 50; ++sample) {
    seen.insert(shown_of(image, options, {.sample = sample}, 16).pixels);
  }
  EXPECT_GT(seen.size(), 20U);
  options.crop = "center";
  options.test_resize.clear();
  EXPECT_EQ(shown_of(test::speckled(16, 16), options, {}, 16).pixels, test::speckled(16, 16).pixels)
      << "a picture of the model's size stays";
}

TEST(Views, FlipsInTurn) {
  AugmentOptions options = plain_options("center");
  options.flip = "alternate";
  const Image image = test::speckled(8, 8);
  for (int64_t sample = 0; sample < 20; ++sample) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const bool is_mirrored = flips_in_turn(9, epoch, sample);
      EXPECT_EQ(shown_of(image, options, {.seed = 9, .epoch = epoch, .sample = sample}, 8).pixels,
                is_mirrored ? flipped(image).pixels : image.pixels);
    }
  }
}

TEST(Views, ErasesTheSamePixelsInBothLayouts) {
  const Image image = test::speckled(12, 12);
  for (const std::string value : {"zero", "random"}) {
    AugmentOptions options = plain_options("center");
    options.erasing_probability = 1;
    options.erasing_value = value;
    const TrainingView view(options, {.sample = 4}, 12);
    std::vector<float> planes(3 * 144), last(planes), whole(planes);
    view.write(image, PixelLayout::kPlanes, planes);
    view.write(image, PixelLayout::kChannelsLast, last);
    normalise(image, options.statistics(), whole);
    size_t erased = 0;
    for (size_t i = 0; i < 144; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(planes[c * 144 + i], last[i * 3 + c]);
        if (planes[c * 144 + i] == whole[c * 144 + i]) continue;
        ++erased;
        EXPECT_TRUE(value == "random" || planes[c * 144 + i] == 0);
      }
    }
    EXPECT_GT(erased, 3U);
    EXPECT_LT(erased, 3U * 72);
  }
}

TEST(Views, LightIsAddedToAllPixels) {
  AugmentOptions options = plain_options("center");
  options.lighting = 0.1;
  options.std = {1, 1, 1};
  const TrainingView view(options, {.sample = 4}, 8);
  const Image image = test::speckled(8, 8);
  std::vector<float> lit(3 * 64), plain(lit);
  view.write(image, PixelLayout::kPlanes, lit);
  normalise(image, options.statistics(), plain);
  const float light = lit[0] - plain[0];
  EXPECT_NE(light, 0);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(lit[i] - plain[i], light, 1e-5);
}

TEST(Views, AStripTakesNoGigabytes) {
  Image strip = make_image(1, 60000);
  for (int64_t x = 29950; x < 30050; ++x) strip.plane(0)[static_cast<size_t>(x)] = 200;
  AugmentOptions options = plain_options("center");
  const auto views = test_views(strip, options, 14);
  EXPECT_EQ(views[0].plane(0)[100], 200);
  for (const std::string crop : {"center", "random", "pad", "squash", "random_resized"}) {
    options.crop = crop;
    EXPECT_EQ(shown_of(strip, options, {}, 14).width, 14) << crop;
  }
}

TEST(Views, RefusesWhatIsNoSide) {
  const AugmentOptions options;
  EXPECT_THROW(TrainingView(options, {}, 0), std::invalid_argument);
  const TrainingView view(options, {}, 8);
  std::vector<float> pixels(3 * 64);
  EXPECT_THROW(view.write(test::speckled(8, 9), PixelLayout::kPlanes, pixels),
               std::invalid_argument);
}

TEST(Views, TestsShowTheMiddle) {
  AugmentOptions options;
  const Image image = test::speckled(40, 60);
  const auto views = test_views(image, options, 14);
  ASSERT_EQ(views.size(), 1U);
  const Image small = resized(image, 16, 24);
  EXPECT_EQ(views[0].pixels, cropped(small, centre_of(small, 14, 14)).pixels);
  EXPECT_EQ(default_test_resize(224), 256);
  EXPECT_EQ(default_test_resize(32), 37);
  EXPECT_EQ(test_views(test::speckled(32, 32), options, 32)[0].pixels,
            test::speckled(32, 32).pixels);
  options.interpolation = "bicubic";
  EXPECT_NE(test_views(image, options, 14)[0].pixels, views[0].pixels);
}

TEST(Views, TestsShowCornersMirrorImagesAndSizes) {
  AugmentOptions options;
  options.test_crop = "five";
  options.test_flip = true;
  options.test_resize = {16, 20};
  const Image image = test::speckled(32, 48);
  const auto views = test_views(image, options, 14);
  ASSERT_EQ(num_test_views(options), 20);
  ASSERT_EQ(views.size(), 20U);
  const Image small = resized(image, 16, 24), larger = resized(image, 20, 30);
  const auto corner = [](const Image& from, int64_t top, int64_t left) {
    return cropped(from, {.top = top, .left = left, .height = 14, .width = 14});
  };
  EXPECT_EQ(views[2].pixels, corner(small, 0, 0).pixels);
  EXPECT_EQ(views[3].pixels, flipped(corner(small, 0, 0)).pixels);
  EXPECT_EQ(views[8].pixels, corner(small, 2, 10).pixels);
  EXPECT_EQ(views[18].pixels, corner(larger, 6, 16).pixels);
  options.test_crop = "squash";
  EXPECT_EQ(num_test_views(options), 2);
  EXPECT_EQ(test_views(image, options, 14)[0].pixels, resized(image, 14, 14).pixels);
}

TEST(Views, MovedPartsCountAsMuchAsTheOthersTogether) {
  AugmentOptions options;
  options.test_flip = true;
  options.test_shift = 1;
  const Image image = test::speckled(8, 8);
  const auto views = test_views(image, options, 8);
  ASSERT_EQ(views.size(), 6U);
  const Image wide = padded_by_reflection(image, 1);
  EXPECT_EQ(views[0].pixels, image.pixels);
  EXPECT_EQ(views[2].pixels, cropped(wide, {.height = 8, .width = 8}).pixels);
  EXPECT_EQ(views[4].pixels, cropped(wide, {.top = 2, .left = 2, .height = 8, .width = 8}).pixels);
  EXPECT_EQ(views[5].pixels, flipped(views[4]).pixels);
  const auto weights = test_weights(options);
  ASSERT_EQ(weights.size(), 6U);
  EXPECT_DOUBLE_EQ(std::accumulate(weights.begin(), weights.end(), 0.0), 1);
  EXPECT_EQ(weights[0], 0.25);
  EXPECT_EQ(weights[5], 0.125);
  options.test_shift = 0;
  EXPECT_EQ(test_weights(options), (std::vector<double>{0.5, 0.5}));
}

}  // namespace
}  // namespace stretto::image
