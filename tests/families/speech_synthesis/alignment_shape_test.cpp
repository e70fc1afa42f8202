#include "families/speech_synthesis/alignment_shape.h"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::tasks {
namespace {

AlignmentShape shape(const std::vector<int64_t>& peaks, int64_t num_places) {
  return alignment_shape(peaks, num_places);
}

TEST(AlignmentShape, OfADiagonalIsOne) {
  EXPECT_EQ(shape({0, 0, 1, 2, 2, 3}, 4).diagonality(), 1);
  EXPECT_EQ(shape({0, 3, 6, 9}, 10).diagonality(), 1) << "silent places are passed over";
}

TEST(AlignmentShape, OfAnAttentionThatStaysIsThePlaceItStaysAt) {
  const auto stays = shape({5, 5, 5, 5, 5}, 10);
  EXPECT_EQ(stays.monotonic, 1);
  EXPECT_DOUBLE_EQ(stays.diagonality(), 0.1);
}

TEST(AlignmentShape, StepsBackAndLeapsAreNotMonotonic) {
  EXPECT_DOUBLE_EQ(shape({0, 1, 0, 1, 2}, 3).monotonic, 0.75);
  const auto leaps = shape({0, 9, 0, 9, 0}, 10);
  EXPECT_EQ(leaps.monotonic, 0);
  EXPECT_EQ(leaps.diagonality(), 0);
}

TEST(AlignmentShape, OfAnAttentionThatEndsEarlyIsThePartThatItReaches) {
  EXPECT_DOUBLE_EQ(shape({0, 1, 2, 3, 4, 4, 4}, 10).diagonality(), 0.5);
}

TEST(AlignmentShape, KnowsTextsWithoutSteps) {
  EXPECT_EQ(shape({}, 4).diagonality(), 0);
  EXPECT_EQ(shape({0}, 1).diagonality(), 1);
}

}  // namespace
}  // namespace stretto::tasks
