#include "metrics/edit_rate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::metrics {
namespace {

/// Each letter is a word.
int64_t edits(const std::string& hypothesis, const std::string& reference) {
  return translation_edits(std::vector<uint32_t>(hypothesis.begin(), hypothesis.end()),
                           std::vector<uint32_t>(reference.begin(), reference.end()));
}

TEST(TranslationEdits, CountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(edits("abcd", "abcd"), 0);
  EXPECT_EQ(edits("abd", "abcd"), 1);
  EXPECT_EQ(edits("abxcd", "abcd"), 1);
  EXPECT_EQ(edits("abxd", "abcd"), 1);
  EXPECT_EQ(edits("", "abcd"), 4);
  EXPECT_EQ(edits("abcd", ""), 4);
  EXPECT_EQ(edits("", ""), 0);
}

TEST(TranslationEdits, CountsMovingABlockOnce) {
  EXPECT_EQ(edits("defabc", "abcdef"), 1);
  EXPECT_EQ(edits("bcdefga", "abcdefg"), 1);
  EXPECT_EQ(edits("defabcx", "abcdefy"), 2) << "one shift, one substitution";
  EXPECT_EQ(edits("cbafed", "abcdef"), 4) << "greedy, as tercom finds it";
}

TEST(TranslationEdits, ReachesTheEndOfAMuchLongerSide) {
  EXPECT_EQ(edits("a", std::string(400, 'b')), 400);
  EXPECT_EQ(edits(std::string(400, 'b'), "a"), 400);
  // The beam misses the two far matches, here as in sacreBLEU; the optimum is 300.
  EXPECT_EQ(edits("ab", "a" + std::string(300, 'x') + "b"), 302);
}

TEST(TranslationEdits, RefusesSegmentsWhoseTableWouldNotFitMemory) {
  EXPECT_THROW(edits(std::string(20000, 'a'), std::string(20000, 'b')), Error);
}

}  // namespace
}  // namespace stretto::metrics
