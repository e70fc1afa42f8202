#include "image/transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using Bytes = std::vector<uint8_t>;

/// A picture of one row.
Image row_of(const std::vector<std::array<uint8_t, 3>>& pixels) {
  Image image = make_image(1, static_cast<int64_t>(pixels.size()));
  for (size_t i = 0; i < pixels.size(); ++i) {
    for (int64_t c = 0; c < kChannels; ++c) image.plane(c)[i] = pixels[i][static_cast<size_t>(c)];
  }
  return image;
}

TEST(Transform, CropsFlipsAndPads) {
  const Image image{.height = 2,
                    .width = 3,
                    .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  EXPECT_EQ(cropped(image, {.top = 1, .left = 1, .height = 1, .width = 2}).pixels,
            (Bytes{5, 6, 11, 12, 17, 18}));
  EXPECT_EQ(flipped(image).pixels,
            (Bytes{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10, 15, 14, 13, 18, 17, 16}));
  const Image padded_image = padded(image, 1, 50);
  EXPECT_EQ(padded_image.height, 4);
  EXPECT_EQ(padded_image.width, 5);
  EXPECT_EQ(cropped(padded_image, {.top = 1, .left = 1, .height = 2, .width = 3}).pixels,
            image.pixels);
  EXPECT_EQ(padded_image.plane(2)[0], 50);
  EXPECT_EQ(padded_image.plane(2).back(), 50);
  EXPECT_THROW(cropped(image, {.top = 1, .left = 2, .height = 1, .width = 2}),
               std::invalid_argument);
}

TEST(Transform, AMarginMirrorsThePicture) {
  const Image image{.height = 1, .width = 3, .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Image wide = padded_by_reflection(image, 4);
  ASSERT_EQ(wide.height, 9);
  ASSERT_EQ(wide.width, 11);
  const Bytes row(wide.plane(0).begin(), wide.plane(0).begin() + 11);
  EXPECT_EQ(row, (Bytes{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3}));
  EXPECT_EQ(Bytes(wide.plane(0).end() - 11, wide.plane(0).end()), row);
  EXPECT_EQ(padded_by_reflection(image, 0).pixels, image.pixels);
}

TEST(Transform, NumbersBecomeThePictureAgain) {
  const Image image = test::speckled(7, 5);
  const ChannelStatistics statistics = kImageNetStatistics;
  for (const auto layout : {PixelLayout::kPlanes, PixelLayout::kChannelsLast}) {
    std::vector<float> pixels(image.pixels.size());
    normalise(image, statistics, pixels, {0, 0, 0}, layout);
    EXPECT_EQ(denormalised(pixels, 7, 5, statistics, layout).pixels, image.pixels);
    EXPECT_THROW(denormalised(pixels, 7, 6, statistics, layout), std::invalid_argument);
  }
  std::vector<float> planes(image.pixels.size()), last(planes);
  normalise(image, statistics, planes);
  normalise(image, statistics, last, {0, 0, 0}, PixelLayout::kChannelsLast);
  for (size_t i = 0; i < 35; ++i) {
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(last[i * 3 + c], planes[c * 35 + i]);
  }
  const std::vector<float> outside{9, -9, std::nanf("")};
  EXPECT_EQ(denormalised(outside, 1, 1, {}).pixels, (Bytes{255, 0, 0}));
}

TEST(Transform, TheMiddleIsRoundedAsPythonDoes) {
  const Image image = make_image(10, 7);
  EXPECT_EQ(centre_of(image, 4, 4), (Region{.top = 3, .left = 2, .height = 4, .width = 4}));
  EXPECT_EQ(centre_of(image, 5, 6), (Region{.top = 2, .left = 0, .height = 5, .width = 6}));
}

TEST(Transform, ColoursAreBlendedAsPillowDoes) {
  Image image = row_of({{100, 200, 50}, {255, 0, 128}});
  change_brightness(image, 0.5);
  EXPECT_EQ(image.pixels, (Bytes{50, 127, 100, 0, 25, 64}));
  change_brightness(image, 3);
  EXPECT_EQ(image.pixels, (Bytes{150, 255, 255, 0, 75, 192}));

  image = row_of({{0, 0, 0}, {200, 200, 200}});
  change_contrast(image, 0);
  EXPECT_EQ(image.pixels, Bytes(6, 100));
  image = row_of({{90, 90, 90}, {110, 110, 110}});
  change_contrast(image, 2);
  EXPECT_EQ(image.pixels, (Bytes{80, 120, 80, 120, 80, 120}));

  image = row_of({{255, 0, 0}});
  change_saturation(image, 0);
  EXPECT_EQ(image.pixels, Bytes(3, grey_of(255, 0, 0)));
  EXPECT_EQ(grey_of(255, 0, 0), 76);
  EXPECT_EQ(grey_of(255, 255, 255), 255);
  image = row_of({{150, 100, 100}});
  change_saturation(image, 1);
  EXPECT_EQ(image.pixels, (Bytes{150, 100, 100}));
}

TEST(Transform, AHueGoesRoundTheCircle) {
  const auto turned_red = [](double turn) {
    Image image = row_of({{200, 20, 20}});
    change_hue(image, turn);
    return image.pixels;
  };
  EXPECT_EQ(turned_red(0), (Bytes{200, 20, 20}));
  EXPECT_EQ(turned_red(1.0 / 3), (Bytes{20, 200, 20}));
  EXPECT_EQ(turned_red(-1.0 / 3), (Bytes{20, 20, 200}));
  EXPECT_EQ(turned_red(1.0 / 6), (Bytes{200, 200, 20}));
  EXPECT_EQ(turned_red(0.5), (Bytes{20, 200, 200}));
  Image grey = row_of({{70, 70, 70}});
  change_hue(grey, 0.3);
  EXPECT_EQ(grey.pixels, Bytes(3, 70));
  Image all = test::speckled(8, 8);
  const Bytes before = all.pixels;
  change_hue(all, 0);
  EXPECT_EQ(all.pixels, before);
}

TEST(Transform, NormalisesEachChannel) {
  const Image image = row_of({{0, 51, 255}, {255, 102, 0}});
  std::vector<float> out(6);
  normalise(image, {.mean = {0.5, 0.2, 0}, .deviation = {0.5, 0.1, 2}}, out, {0, 0.1, 0});
  const std::vector<float> wanted{-1, 1, 1, 3, 0.5, 0};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 1e-5) << i;
  std::vector<float> too_small(5);
  EXPECT_THROW(normalise(image, {}, too_small), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::image
