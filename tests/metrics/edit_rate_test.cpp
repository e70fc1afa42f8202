#include "metrics/edit_rate.h"

#include <gtest/gtest.h>

#include <numeric>
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

/// `moved` words that stand before `others` words of the hypothesis, and behind them in the
/// reference; or the other way round. All words differ.
int64_t edits_of_moving(uint32_t moved, uint32_t others, bool to_the_end) {
  std::vector<uint32_t> block(moved), rest(others);
  std::iota(block.begin(), block.end(), 1);
  std::iota(rest.begin(), rest.end(), 1000);
  std::vector<uint32_t> front = block, back = rest;
  front.insert(front.end(), rest.begin(), rest.end());
  back.insert(back.end(), block.begin(), block.end());
  return to_the_end ? translation_edits(front, back) : translation_edits(back, front);
}

// The limits are tercom's: with another one scores are no longer those that papers quote.
TEST(TranslationEdits, AWordMovesByAtMostFiftyPositions) {
  for (const bool to_the_end : {true, false}) {
    EXPECT_EQ(edits_of_moving(1, 50, to_the_end), 1) << "one shift";
    EXPECT_EQ(edits_of_moving(1, 51, to_the_end), 2) << "a deletion and an insertion";
  }
}

TEST(TranslationEdits, ABlockOfAtMostTenWordsMovesAtOnce) {
  for (const bool to_the_end : {true, false}) {
    EXPECT_EQ(edits_of_moving(10, 20, to_the_end), 1) << "one shift";
    EXPECT_EQ(edits_of_moving(11, 20, to_the_end), 2) << "two shifts";
  }
}

/// The edits of words that stand in the wrong order two by two: ba dc fe …
int64_t edits_of_swapping(uint32_t pairs) {
  std::vector<uint32_t> reference(2 * pairs);
  std::iota(reference.begin(), reference.end(), 1);
  std::vector<uint32_t> hypothesis = reference;
  for (size_t i = 0; i < hypothesis.size(); i += 2) std::swap(hypothesis[i], hypothesis[i + 1]);
  return translation_edits(hypothesis, reference);
}

// n pairs take n * n + 3 candidates. sacreBLEU 2.6.0 counts the same edits, and 32 without the
// limit.
TEST(TranslationEdits, TheSearchForShiftsEndsAtAThousandCandidates) {
  EXPECT_EQ(edits_of_swapping(31), 31) << "964 candidates: a shift for each pair";
  EXPECT_EQ(edits_of_swapping(32), 33) << "1027 candidates: the last pair is not shifted";
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
