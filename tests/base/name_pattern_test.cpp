#include "base/name_pattern.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// The many cases stand beside the groups that were first to have patterns (tests/optim).
TEST(NamePattern, AStarStandsForDotsTooAndAQuestionMarkForOneCharacter) {
  EXPECT_TRUE(matches("encoder.*", "encoder.layers.0.ffn.up.weight"));
  EXPECT_TRUE(matches("encoder.layers.?.*", "encoder.layers.0.ffn.up.weight"));
  EXPECT_FALSE(matches("encoder.layers.?.*", "encoder.layers.10.ffn.up.weight"));
  EXPECT_FALSE(matches("encoder.*", "decoder.encoder.weight"));
  EXPECT_FALSE(matches("encoder", "encoder.weight"));
}

}  // namespace
}  // namespace stretto
