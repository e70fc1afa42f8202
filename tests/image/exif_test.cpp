#include "image/exif.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

TEST(Exif, FindsTheOrientationInBothOrdersOfBytes) {
  for (const bool is_big_endian : {false, true}) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      EXPECT_EQ(exif_orientation(test::exif_of(orientation, is_big_endian)), orientation);
    }
  }
}

TEST(Exif, WhatIsDamagedIsUpright) {
  const std::string whole = test::exif_of(6, false);
  EXPECT_EQ(exif_orientation(test::exif_of(9, false)), 1);
  EXPECT_EQ(exif_orientation(test::exif_of(0, false)), 1);
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("http://ns.adobe.com/xap/1.0/"), 1);
  for (size_t size = 0; size + 8 < whole.size(); ++size) {
    EXPECT_EQ(exif_orientation(whole.substr(0, size)), 1) << size;
  }
  std::string far = whole;
  far.replace(10, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(exif_orientation(far), 1);
}

/// One plane of a picture as rows of numbers.
std::vector<std::vector<int>> rows_of(const Image& image) {
  std::vector<std::vector<int>> rows;
  for (int64_t y = 0; y < image.height; ++y) {
    rows.emplace_back();
    for (int64_t x = 0; x < image.width; ++x) {
      rows.back().push_back(image.plane(2)[static_cast<size_t>(y * image.width + x)]);
    }
  }
  return rows;
}

TEST(Exif, TurnsThePictureAsItWasSeen) {
  Image stored = make_image(2, 3);
  for (int i = 0; i < 6; ++i) stored.plane(2)[static_cast<size_t>(i)] = static_cast<uint8_t>(i + 1);
  using Rows = std::vector<std::vector<int>>;
  // The table of the standard: where row 0 and column 0 are in the picture as it was seen.
  EXPECT_EQ(rows_of(upright(stored, 1)), (Rows{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(rows_of(upright(stored, 2)), (Rows{{3, 2, 1}, {6, 5, 4}}));
  EXPECT_EQ(rows_of(upright(stored, 3)), (Rows{{6, 5, 4}, {3, 2, 1}}));
  EXPECT_EQ(rows_of(upright(stored, 4)), (Rows{{4, 5, 6}, {1, 2, 3}}));
  EXPECT_EQ(rows_of(upright(stored, 5)), (Rows{{1, 4}, {2, 5}, {3, 6}}));
  EXPECT_EQ(rows_of(upright(stored, 6)), (Rows{{4, 1}, {5, 2}, {6, 3}}));
  EXPECT_EQ(rows_of(upright(stored, 7)), (Rows{{6, 3}, {5, 2}, {4, 1}}));
  EXPECT_EQ(rows_of(upright(stored, 8)), (Rows{{3, 6}, {2, 5}, {1, 4}}));
}

}  // namespace
}  // namespace stretto::image
