#include "interchange/stored_weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;

TEST(NamedTensors, NameWhatWasLeftOut) {
  const std::string bytes = bytes_of_floats({1, 2});
  NamedTensors tensors(
      {{"a", store::DType::kF32, {2}, bytes}, {"b", store::DType::kF32, {2}, bytes}});
  EXPECT_EQ(tensors.take("a").name, "a");
  EXPECT_EQ(tensors.find("c"), nullptr);
  const auto left = failure(ExitCode::kBadData, [&] { tensors.require_all_taken("GGUF"); });
  EXPECT_NE(left.message().find("`b`"), std::string::npos);
  const auto missing = failure(ExitCode::kBadData, [&] { tensors.take("c"); });
  EXPECT_NE(missing.message().find("`c`"), std::string::npos);
  tensors.take("b");
  tensors.require_all_taken("GGUF");
}

TEST(NamedTensors, RowsAreViews) {
  const std::string bytes = bytes_of_floats({1, 2, 3, 4, 5, 6});
  const store::TensorView tensor{"a", store::DType::kF32, {3, 2}, bytes};
  const auto rows = rows_of(tensor, 1, 2);
  EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(floats_of(rows), (std::vector<float>{3, 4, 5, 6}));
}

TEST(StoredWeights, RowsOfInt8SpanTheirLargestWeight) {
  const std::vector<float> values{1, -2, 0.5F, 0, 0, 0};
  const auto scales = int8_scales(values, 2);
  EXPECT_EQ(scales, (std::vector<float>{63.5F, 1})) << "a row of zeros has 1";
  // 63.5 is a tie, and goes to the even 64.
  EXPECT_EQ(int8_codes(values, scales), std::string("\x40\x81\x20\x00\x00\x00", 6));
}

}  // namespace
}  // namespace stretto::interchange
