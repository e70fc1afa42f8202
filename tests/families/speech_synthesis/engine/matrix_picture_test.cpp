#include "families/speech_synthesis/engine/matrix_picture.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "image/image_file.h"

namespace stretto::tasks {
namespace {

image::Image drawn_matrix(const at::Tensor& matrix) {
  return image::decode_image(matrix_sample(matrix, "").bytes, "picture", {});
}

/// Red, green and blue together.
int brightness(const image::Image& picture, int64_t y, int64_t x) {
  int sum = 0;
  for (int64_t channel = 0; channel < image::kChannels; ++channel) {
    sum += picture.plane(channel)[static_cast<size_t>(y * picture.width + x)];
  }
  return sum;
}

TEST(MatrixPicture, HasTimeFromLeftToRightAndHighRowsAbove) {
  // Two steps of three numbers: the highest is the last number of the second step.
  const auto picture = drawn_matrix(at::tensor({0.0, 1.0, 2.0, 3.0, 4.0, 5.0}).view({2, 3}));
  const int64_t bottom = picture.height - 1, right = picture.width - 1;
  EXPECT_GT(brightness(picture, 0, right), brightness(picture, bottom, right));
  EXPECT_GT(brightness(picture, bottom, right), brightness(picture, 0, 0));
  EXPECT_GT(brightness(picture, 0, 0), brightness(picture, bottom, 0));
}

TEST(MatrixPicture, IsEnlargedWhereItIsSmallAndThinnedWhereItIsLong) {
  const auto small = drawn_matrix(at::rand({4, 2}));
  EXPECT_GE(small.width, 320);
  EXPECT_GE(small.height, 160);
  const auto large = drawn_matrix(at::rand({5000, 80}));
  EXPECT_LE(large.width, 960);
  EXPECT_LE(large.height, 640);
}

TEST(MatrixPicture, DrawsNumbersThatAreNotFiniteAsTheLowest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto picture = drawn_matrix(at::tensor({nan, 1.0, 2.0, 3.0}).view({4, 1}));
  EXPECT_LT(brightness(picture, 0, 0), brightness(picture, 0, picture.width - 1));
  EXPECT_FALSE(matrix_sample(at::full({2, 2}, nan), "").bytes.empty());
}

TEST(MatrixPicture, OfNothingHasNoBytes) {
  EXPECT_TRUE(matrix_sample(at::zeros({0, 80}), "").bytes.empty());
}

}  // namespace
}  // namespace stretto::tasks
