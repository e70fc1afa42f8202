#include "data/squad/code_points.h"

#include <gtest/gtest.h>

namespace stretto::data {
namespace {

TEST(CodePoints, AreFoundBetweenBytes) {
  const std::string_view text = "aé€😀z";  // of 1, 2, 3, 4 and 1 bytes
  const CodePoints points(text);
  EXPECT_EQ(points.size(), 5);
  EXPECT_EQ(points.byte_at(0), 0);
  EXPECT_EQ(points.byte_at(3), 6);
  EXPECT_EQ(points.byte_at(5), 11);
  EXPECT_EQ(points.code_point_at(0), 0);
  EXPECT_EQ(points.code_point_at(6), 3);
  EXPECT_EQ(points.code_point_at(9), 3);  // within the emoji
  EXPECT_EQ(points.code_point_at(11), 5);
  EXPECT_EQ(points.slice(1, 4), "é€😀");
  EXPECT_EQ(points.slice(5, 5), "");
}

TEST(CodePoints, OfNoTextAreNone) {
  const CodePoints points("");
  EXPECT_EQ(points.size(), 0);
  EXPECT_EQ(points.byte_at(0), 0);
  EXPECT_EQ(points.slice(0, 0), "");
}

}  // namespace
}  // namespace stretto::data
