#include "image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "image/transform.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

double plain_weight(Filter filter, double d) {
  d = std::abs(d);
  if (filter == Filter::kArea) return d < 0.5 ? 1 : 0;
  if (filter == Filter::kBilinear) return std::max(0.0, 1 - d);
  if (d < 1) return 1.5 * d * d * d - 2.5 * d * d + 1;
  return d < 2 ? -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2 : 0;
}

/// A line in another size, without any rounding: a mean with weights by the distance of centres.
std::vector<double> plain_line(const std::vector<double>& line, int64_t to, Filter filter) {
  const double step = static_cast<double>(line.size()) / static_cast<double>(to);
  std::vector<double> out;
  for (int64_t i = 0; i < to; ++i) {
    double sum = 0, weights = 0;
    for (size_t j = 0; j < line.size(); ++j) {
      const double distance =
          (static_cast<double>(j) + 0.5) - (static_cast<double>(i) + 0.5) * step;
      const double weight = plain_weight(filter, distance / std::max(step, 1.0));
      sum += weight * line[j];
      weights += weight;
    }
    out.push_back(std::clamp(sum / weights, 0.0, 255.0));
  }
  return out;
}

using Lines = std::vector<std::vector<double>>;

Lines transposed(const Lines& lines) {
  Lines columns(lines.front().size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) columns[i].push_back(line[i]);
  }
  return columns;
}

Lines plain_lines(const Lines& lines, int64_t to, Filter filter) {
  Lines out;
  for (const auto& line : lines) out.push_back(plain_line(line, to, filter));
  return out;
}

/// A plane in another size: its rows, then its columns, but the other way round where it becomes
/// lower by far.
std::vector<double> plain_plane(const Image& image, int64_t height, int64_t width, Filter filter) {
  Lines rows;
  for (int64_t y = 0; y < image.height; ++y) {
    const auto row = image.plane(1).subspan(static_cast<size_t>(y * image.width),
                                            static_cast<size_t>(image.width));
    rows.emplace_back(row.begin(), row.end());
  }
  const int64_t fewer = image.height - height;
  const bool is_vertical_first = fewer > 0 && fewer > 2 * (image.width - width);
  if (!is_vertical_first) rows = plain_lines(rows, width, filter);
  rows = transposed(plain_lines(transposed(rows), height, filter));
  if (is_vertical_first) rows = plain_lines(rows, width, filter);
  std::vector<double> out;
  for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

TEST(Resize, IsAMeanWithTheWeightsOfTheFilter) {
  const Image image = test::speckled(23, 31);
  for (const Filter filter : {Filter::kArea, Filter::kBilinear, Filter::kBicubic}) {
    for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{
             {7, 9}, {23, 10}, {11, 31}, {40, 50}, {1, 1}, {22, 64}, {3, 28}}) {
      // Boxes that end within a pixel count it whole or not at all, which plain_weight() decides by
      // the last bit.
      if (filter == Filter::kArea && (height > 23 || width > 31)) continue;
      const Image got = resized(image, height, width, filter);
      const auto wanted = plain_plane(image, height, width, filter);
      ASSERT_EQ(got.height, height);
      ASSERT_EQ(got.width, width);
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_NEAR(got.plane(1)[i], wanted[i], 1.2)
            << static_cast<int>(filter) << ": " << height << " x " << width << ", " << i;
      }
    }
  }
}

TEST(Resize, AnAreaIsTheMeanOfItsPixels) {
  Image image = make_image(2, 4);
  const std::vector<uint8_t> pixels{10, 20, 100, 100, 30, 40, 100, 103};
  std::copy(pixels.begin(), pixels.end(), image.plane(0).begin());
  const Image got = resized(image, 1, 2, Filter::kArea);
  EXPECT_EQ(got.plane(0)[0], 25);
  EXPECT_EQ(got.plane(0)[1], 101);
}

TEST(Resize, TheSameSizeChangesNothing) {
  const Image image = test::speckled(9, 8);
  for (const Filter filter : {Filter::kArea, Filter::kBilinear, Filter::kBicubic}) {
    EXPECT_EQ(resized(image, 9, 8, filter).pixels, image.pixels);
    const Image one_side = resized(image, 9, 4, filter);
    EXPECT_EQ(resized(one_side, 9, 4, filter).pixels, one_side.pixels);
  }
}

TEST(Resize, APartIsResizedAsIfItHadBeenCutOut) {
  const Image image = test::speckled(40, 50);
  const Region region{.top = 7, .left = 11, .height = 21, .width = 30};
  for (const Filter filter : {Filter::kArea, Filter::kBilinear, Filter::kBicubic}) {
    EXPECT_EQ(resized(image, region, 12, 13, filter).pixels,
              resized(cropped(image, region), 12, 13, filter).pixels);
    EXPECT_EQ(resized(image, region, 21, 30, filter).pixels, cropped(image, region).pixels);
  }
}

TEST(Resize, RefusesWhatIsNoSize) {
  const Image image = test::speckled(4, 4);
  EXPECT_THROW(resized(image, 0, 4), std::invalid_argument);
  EXPECT_THROW(resized(image, {.height = 5, .width = 4}, 2, 2), std::invalid_argument);
  EXPECT_THROW(resized(image, {.top = 1, .height = 4, .width = 4}, 2, 2), std::invalid_argument);
  EXPECT_THROW(resized(image, Region{}, 2, 2), std::invalid_argument);
}

TEST(Resize, TheShorterSideDecides) {
  EXPECT_EQ(with_short_side(480, 640, 256), (Region{.height = 256, .width = 341}));
  EXPECT_EQ(with_short_side(640, 480, 256), (Region{.height = 341, .width = 256}));
  EXPECT_EQ(with_short_side(100, 100, 224), (Region{.height = 224, .width = 224}));
}

}  // namespace
}  // namespace stretto::image
