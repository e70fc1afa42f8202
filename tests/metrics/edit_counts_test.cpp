#include "metrics/edit_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace stretto::metrics {
namespace {

using Numbers = std::vector<uint32_t>;

/// Each letter is a word.
EditCounts edits_of(const std::string& reference, const std::string& hypothesis) {
  return count_edits(Numbers(reference.begin(), reference.end()),
                     Numbers(hypothesis.begin(), hypothesis.end()));
}

EditCounts told(int64_t hits, int64_t substitutions, int64_t deletions, int64_t insertions) {
  return {.hits = hits,
          .substitutions = substitutions,
          .deletions = deletions,
          .insertions = insertions};
}

TEST(EditCounts, AreThoseOfTheNearestAlignment) {
  EXPECT_EQ(edits_of("abcd", "abcd"), told(4, 0, 0, 0));
  EXPECT_EQ(edits_of("abcd", "abd"), told(3, 0, 1, 0));
  EXPECT_EQ(edits_of("abcd", "abxcd"), told(4, 0, 0, 1));
  EXPECT_EQ(edits_of("abcd", "abxd"), told(3, 1, 0, 0));
  EXPECT_EQ(edits_of("kitten", "sitting"), told(4, 2, 0, 1));
  EXPECT_EQ(edits_of("abcdef", "bcdefa"), told(5, 0, 1, 1)) << "a word that moved is two errors";
}

TEST(EditCounts, OfAnEmptySideAreItsLength) {
  EXPECT_EQ(edits_of("", ""), told(0, 0, 0, 0));
  EXPECT_EQ(edits_of("abc", ""), told(0, 0, 3, 0));
  EXPECT_EQ(edits_of("", "ab"), told(0, 0, 0, 2));
}

// Two substitutions are as few errors; rapidfuzz 3.14 gives these.
TEST(EditCounts, OfSeveralNearestAlignmentsAreThoseOfRapidfuzz) {
  EXPECT_EQ(edits_of("ab", "ba"), told(1, 0, 1, 1));
  EXPECT_EQ(edits_of("abcb", "bcab"), told(3, 0, 1, 1));
}

/// By the recursion, without a thought of speed.
int64_t fewest_errors(const Numbers& a, const Numbers& b, size_t i, size_t j) {
  if (i == 0 || j == 0) return static_cast<int64_t>(i + j);
  return std::min({fewest_errors(a, b, i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1),
                   fewest_errors(a, b, i - 1, j) + 1, fewest_errors(a, b, i, j - 1) + 1});
}

TEST(EditCounts, AreTheFewestAndAddUpToBothLengths) {
  RandomStream random(5);
  for (int round = 0; round < 300; ++round) {
    Numbers a(random.below(7)), b(random.below(7));
    for (uint32_t& word : a) word = static_cast<uint32_t>(random.below(3));
    for (uint32_t& word : b) word = static_cast<uint32_t>(random.below(3));
    const EditCounts got = count_edits(a, b);
    EXPECT_EQ(got.errors(), fewest_errors(a, b, a.size(), b.size()));
    EXPECT_EQ(got.hits + got.substitutions + got.deletions, std::ssize(a));
    EXPECT_EQ(got.hits + got.substitutions + got.insertions, std::ssize(b));
    EXPECT_GE(std::min({got.hits, got.substitutions, got.deletions, got.insertions}), 0);
  }
}

TEST(EditCounts, OfLongSequencesThatAreAlmostAlikeTakeNoTime) {
  Numbers a(1'000'000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint32_t>(i);
  Numbers b = a;
  b[500'000] = 0;
  EXPECT_EQ(count_edits(a, b), told(999'999, 1, 0, 0));
}

TEST(EditCounts, OfLongSequencesThatHaveNothingInCommonAreRefused) {
  EXPECT_THROW(count_edits(Numbers(100'000, 1), Numbers(100'000, 2)), Error);
}

}  // namespace
}  // namespace stretto::metrics
