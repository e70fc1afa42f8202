#include "image/policy_changes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "image/transform.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using Bytes = std::vector<uint8_t>;

/// A picture whose three channels are these rows.
Image grey_picture(int64_t height, int64_t width, const Bytes& plane) {
  Image image = make_image(height, width);
  for (int64_t c = 0; c < kChannels; ++c) {
    std::copy(plane.begin(), plane.end(), image.plane(c).begin());
  }
  return image;
}

Bytes first_plane(const Image& image) {
  return {image.plane(0).begin(), image.plane(0).end()};
}

TEST(PolicyChanges, MovesByWholePixels) {
  const Image image = grey_picture(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(first_plane(translated(image, 1, 0)), (Bytes{0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(first_plane(translated(image, -2, 1)), (Bytes{0, 0, 0, 3, 0, 0}));
  EXPECT_EQ(translated(image, 0, 0).pixels, image.pixels);
  EXPECT_EQ(first_plane(translated(image, 9, 0)), Bytes(6, 0));
}

TEST(PolicyChanges, ShearsByTheNearestPixel) {
  const Image image = grey_picture(3, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  // The place of row y is x + y + 0.5 with a slope of 1: half a pixel more in the first row
  // already.
  EXPECT_EQ(first_plane(sheared_x(image, 1)), (Bytes{2, 3, 0, 6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(first_plane(sheared_y(image, 1)), (Bytes{4, 8, 0, 7, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sheared_x(image, 0).pixels, image.pixels);
}

TEST(PolicyChanges, TurnsAnticlockwise) {
  const Image image = grey_picture(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(first_plane(rotated(image, 90)), (Bytes{2, 4, 1, 3}));
  EXPECT_EQ(first_plane(rotated(image, 180)), (Bytes{4, 3, 2, 1}));
  EXPECT_EQ(first_plane(rotated(image, -90)), (Bytes{3, 1, 4, 2}));
  EXPECT_EQ(rotated(image, 360).pixels, image.pixels);
  const Image large = test::gradient(41, 41), back = rotated(rotated(large, 30), -30);
  EXPECT_NEAR(back.plane(0)[20 * 41 + 25], large.plane(0)[20 * 41 + 25], 10);
  EXPECT_EQ(rotated(large, 30).plane(0)[40 * 41 + 40], 0) << "corners come from outside";
}

TEST(PolicyChanges, VeryLargePicturesHavePlacesToo) {
  // Above 32,768 pixels the places are floats.
  Image image = make_image(1, 40000);
  image.plane(1)[39999] = 200;
  EXPECT_EQ(affine(image, {-1, 1e-9, 40000, 0, 1, 0}).plane(1)[0], 200);
}

TEST(PolicyChanges, SharpnessBlendsWithAMeanOfThirteenths) {
  Image image = grey_picture(3, 3, {0, 0, 0, 0, 130, 0, 0, 0, 0});
  change_sharpness(image, 0);
  EXPECT_EQ(first_plane(image), (Bytes{0, 0, 0, 0, 50, 0, 0, 0, 0}));
  image = grey_picture(3, 3, {10, 10, 10, 10, 36, 10, 10, 10, 10});
  change_sharpness(image, 2);
  EXPECT_EQ(first_plane(image)[4], 52) << "20 + 2 * (36 - 20)";
  EXPECT_EQ(first_plane(image)[0], 10) << "edges stay";
  Image narrow = test::speckled(2, 9);
  const Bytes before = narrow.pixels;
  change_sharpness(narrow, 0.5);
  EXPECT_EQ(narrow.pixels, before);
}

TEST(PolicyChanges, KeepsUpperBitsAndInverts) {
  const Bytes bytes{0, 1, 127, 128, 254, 255};
  Image image = grey_picture(1, 6, bytes);
  posterize(image, 8);
  EXPECT_EQ(first_plane(image), bytes);
  posterize(image, 1);
  EXPECT_EQ(first_plane(image), (Bytes{0, 0, 0, 128, 128, 128}));
  image = grey_picture(1, 6, bytes);
  solarize(image, 127.5);
  EXPECT_EQ(first_plane(image), (Bytes{0, 1, 127, 127, 1, 0}));
  solarize(image, 255);
  EXPECT_EQ(first_plane(image), (Bytes{0, 1, 127, 127, 1, 0}));
}

TEST(PolicyChanges, SpreadsEachChannel) {
  Image image = make_image(1, 3);
  const Bytes red{100, 150, 200}, blue{7, 7, 7};
  std::copy(red.begin(), red.end(), image.plane(0).begin());
  std::copy(blue.begin(), blue.end(), image.plane(2).begin());
  auto_contrast(image);
  // 200 * 2.55 - 255 is just below 255 in doubles, as it is in Python.
  EXPECT_EQ(image.pixels, (Bytes{0, 127, 254, 0, 0, 0, 7, 7, 7}));
}

TEST(PolicyChanges, EqualizesFrequencies) {
  Image image = make_image(1, 1024);
  for (int64_t c = 0; c < kChannels; ++c) {
    for (size_t i = 0; i < 1024; ++i) image.plane(c)[i] = i < 512 ? 10 : i < 1023 ? 20 : 30;
  }
  equalize(image);
  // step = 1023 / 255 = 4, from 2 on: 2 / 4, 514 / 4, 1025 / 4 cut to a byte.
  EXPECT_EQ(image.plane(0)[0], 0);
  EXPECT_EQ(image.plane(0)[600], 128);
  EXPECT_EQ(image.plane(0)[1023], 255);
  Image small = test::speckled(3, 3);
  const Bytes before = small.pixels;
  equalize(small);
  EXPECT_EQ(small.pixels, before) << "too few pixels for a step";
}

}  // namespace
}  // namespace stretto::image
