#include "families/image_classification/engine/image_samples.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "image/encode_png.h"
#include "image/image_file.h"

namespace stretto::tasks {
namespace {

image::Image even(int64_t side, uint8_t value) {
  auto picture = image::make_image(side, side);
  std::fill(picture.pixels.begin(), picture.pixels.end(), value);
  return picture;
}

image::Image decoded(const report::MediaSample& sample) {
  return image::decode_image(sample.bytes, "a sample");
}

TEST(ImageSamples, SmallPicturesAreEnlarged) {
  const auto large = decoded(picture_sample(even(30, 7), "a picture"));
  EXPECT_EQ(large.height, 120);
  EXPECT_EQ(large.pixels, even(120, 7).pixels);
  EXPECT_EQ(decoded(picture_sample(even(200, 7), "")).height, 200);
}

TEST(ImageSamples, ASheetHasAllPicturesWithAMarginAround) {
  const auto sheet = sheet_of({even(4, 10), even(4, 20), even(4, 30)});
  EXPECT_EQ(sheet.height, 2 + 6);
  EXPECT_EQ(sheet.width, 2 + 3 * 6);
  const auto at = [&](int64_t y, int64_t x) {
    return static_cast<int>(sheet.plane(1)[static_cast<size_t>(y * sheet.width + x)]);
  };
  EXPECT_EQ(at(0, 0), 255);
  EXPECT_EQ(at(2, 2), 10);
  EXPECT_EQ(at(5, 8 + 3), 20);
  EXPECT_EQ(at(2, 14), 30);
  EXPECT_TRUE(sheet_of({}).pixels.empty());
}

TEST(ImageSamples, PixelsAreShownAsTheyWereBeforeNormalisation) {
  experiment::ImageClassificationOptions own;
  own.augment.mean = {0.5, 0.5, 0.5};
  own.augment.std = {0.25, 0.25, 0.25};
  const auto sheet = decoded(seen_sample(at::zeros({1, 3, 96, 96}), own));
  EXPECT_NEAR(sheet.plane(0)[static_cast<size_t>(50 * sheet.width + 50)], 128, 1);
}

TEST(ImageSamples, OfManyClassesTheMostConfusedAreShown) {
  const report::MatrixSample matrix{
      .title = "Confusion matrix",
      .row_title = "class",
      .column_title = "predicted",
      .rows = {"a", "b", "c", "d"},
      .columns = {"a", "b", "c", "d"},
      .counts = {{9, 0, 1, 0}, {0, 9, 0, 3}, {0, 0, 9, 0}, {0, 2, 0, 9}}};
  const auto part = most_confused(matrix, 2);
  EXPECT_EQ(part.title, "Confusion matrix of the 2 classes with the most mistakes, of 4");
  EXPECT_EQ(part.rows, (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(part.columns, part.rows);
  EXPECT_EQ(part.counts, (std::vector<std::vector<int64_t>>{{9, 3}, {2, 9}}));
  EXPECT_EQ(most_confused(matrix).counts, matrix.counts) << "all fit";
}

TEST(ImageSamples, FiltersReachFromBlackToWhite) {
  at::Tensor filters = at::zeros({2, 3, 3, 3});
  filters[0][0][1][1] = 5;
  filters[1].fill_(-1);
  const auto sheet = decoded(filter_sample(filters));
  const auto red = [&](int64_t y, int64_t x) {
    return static_cast<int>(sheet.plane(0)[static_cast<size_t>(y * sheet.width + x)]);
  };
  EXPECT_EQ(red(2, 2), 0);
  EXPECT_EQ(red(2 + 12, 2 + 12), 255) << "the middle of 3 x 3 pixels of 8 x 8";
}

}  // namespace
}  // namespace stretto::tasks
