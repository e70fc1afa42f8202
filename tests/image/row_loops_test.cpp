#include "image/row_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using Row = std::vector<uint8_t>;

Row speckled_row(size_t count) {
  Row row = test::speckled(1, static_cast<int64_t>(count)).pixels;
  row.resize(count);
  return row;
}

TEST(RowLoops, SumsAreRoundedAndCutToBytes) {
  constexpr int32_t kOne = 1 << kFractionBits;
  const Row pixels = speckled_row(3 * 20 + kBlock);
  // What Keys' cubic may have, a half, and sums above 255 and below 0.
  const std::vector<std::vector<int32_t>> all_weights{
      {kOne}, {kOne / 2, kOne / 2}, {-kOne / 8, kOne + kOne / 4, -kOne / 8}, {-kOne}, {kOne, kOne}};
  for (const RowLoops* loops : all_row_loops()) {
    for (const auto& weights : all_weights) {
      Row out(kBlock);
      loops->weigh(pixels.data(), 20, weights.data(), static_cast<int64_t>(weights.size()),
                   out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        int64_t sum = kOne / 2;
        for (size_t t = 0; t < weights.size(); ++t) sum += int64_t{weights[t]} * pixels[t * 20 + i];
        EXPECT_EQ(out[i], std::clamp<int64_t>(sum >> kFractionBits, 0, 255))
            << loops->name << ", " << weights.size() << " weights, " << i;
      }
    }
  }
}

TEST(RowLoops, RowsBecomeColumns) {
  const Row from = speckled_row(16 * 21);
  for (const RowLoops* loops : all_row_loops()) {
    Row to(16 * 18);
    loops->transpose(from.data(), 21, to.data(), 18);
    for (size_t y = 0; y < 16; ++y) {
      for (size_t x = 0; x < 16; ++x) EXPECT_EQ(to[x * 18 + y], from[y * 21 + x]) << loops->name;
    }
    EXPECT_EQ(to[16], 0) << "nothing is written beside the square";
  }
}

TEST(RowLoops, PixelsAreSplitAndRowsReversed) {
  for (const RowLoops* loops : all_row_loops()) {
    for (const size_t count : {0, 1, 15, 16, 17, 31, 48, 100}) {
      const Row rgb = speckled_row(3 * count);
      Row red(count + 1), green(count + 1), blue(count + 1), reversed(3 * count + 1);
      loops->split(rgb.data(), static_cast<int64_t>(count), red.data(), green.data(), blue.data());
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(red[i], rgb[3 * i]) << loops->name;
        EXPECT_EQ(green[i], rgb[3 * i + 1]);
        EXPECT_EQ(blue[i], rgb[3 * i + 2]);
      }
      EXPECT_EQ(red[count] + green[count] + blue[count], 0);
      loops->reverse(rgb.data(), static_cast<int64_t>(3 * count), reversed.data());
      EXPECT_TRUE(std::equal(rgb.begin(), rgb.end(), reversed.rbegin() + 1))
          << loops->name << ", " << count;
      EXPECT_EQ(reversed[3 * count], 0);
    }
  }
}

}  // namespace
}  // namespace stretto::image
