#include "interchange/names.h"

#include <gtest/gtest.h>

namespace stretto::interchange {
namespace {

TEST(Names, ARowStandsForWeightAndBias) {
  const NameRow row{"a.*.b", "x.*.y"};
  const auto pairs = expand({&row, 1}, 2);
  ASSERT_EQ(pairs.size(), 4U);
  EXPECT_EQ(pairs[0], (NamePair{{"a.0.b.weight"}, "x.0.y.weight"}));
  EXPECT_EQ(pairs[3], (NamePair{{"a.1.b.bias"}, "x.1.y.bias"}));
}

TEST(Names, BracesAreJoinedAndPrefixesLeftOut) {
  const NameRow row{"m.{q,k}.t", "x", Parts::kWhole, true};
  const auto pairs = expand({&row, 1}, 0, "m.");
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0], (NamePair{{"q.t", "k.t"}, "x", true}));
}

TEST(Names, OfATransposedLayerTheMatrixAloneIsTransposed) {
  const NameRow row{.theirs = "h.*.attn.c_attn", .ours = "layers.*.qkv", .transposed = true};
  const auto pairs = expand({&row, 1}, 1);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_TRUE(pairs[0].transposed) << pairs[0].ours;
  EXPECT_FALSE(pairs[1].transposed) << pairs[1].ours;
}

TEST(Names, OldNamesOfNormsAreKnown) {
  EXPECT_EQ(modern_name("a.LayerNorm.gamma"), "a.LayerNorm.weight");
  EXPECT_EQ(modern_name("a.LayerNorm.beta"), "a.LayerNorm.bias");
  EXPECT_EQ(modern_name("a.gamma"), "a.gamma");
}

}  // namespace
}  // namespace stretto::interchange
