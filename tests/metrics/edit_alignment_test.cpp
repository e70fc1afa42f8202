#include "metrics/edit_alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "metrics/edit_counts.h"

namespace stretto::metrics {
namespace {

using Numbers = std::vector<uint32_t>;

Numbers numbers_of(const std::string& letters) {
  return {letters.begin(), letters.end()};
}

/// "ab>ac" as "a=a b/c": each letter is a word, `-` stands for none.
std::string shown(const std::string& reference, const std::string& hypothesis) {
  std::string text;
  for (const auto& pair : align_edits(numbers_of(reference), numbers_of(hypothesis))) {
    if (!text.empty()) text += ' ';
    text += pair.reference < 0 ? '-' : reference[static_cast<size_t>(pair.reference)];
    text += pair.edit == Edit::kHit ? '=' : '/';
    text += pair.hypothesis < 0 ? '-' : hypothesis[static_cast<size_t>(pair.hypothesis)];
  }
  return text;
}

TEST(EditAlignment, PairsWordsInTheirOrder) {
  EXPECT_EQ(shown("abcd", "abcd"), "a=a b=b c=c d=d");
  EXPECT_EQ(shown("abcd", "abxd"), "a=a b=b c/x d=d");
  EXPECT_EQ(shown("abcd", "abd"), "a=a b=b c/- d=d");
  EXPECT_EQ(shown("abcd", "abxcd"), "a=a b=b -/x c=c d=d");
  EXPECT_EQ(shown("", "ab"), "-/a -/b");
  EXPECT_EQ(shown("ab", ""), "a/- b/-");
  EXPECT_EQ(shown("", ""), "");
}

TEST(EditAlignment, HasTheCountsOfTheAlignmentThatIsCounted) {
  RandomStream random(7);
  for (int round = 0; round < 300; ++round) {
    Numbers reference(random.below(9)), hypothesis(random.below(9));
    for (auto* words : {&reference, &hypothesis}) {
      for (uint32_t& word : *words) word = static_cast<uint32_t>(random.below(3));
    }
    EditCounts counts;
    int64_t next_reference = 0, next_hypothesis = 0;
    for (const auto& pair : align_edits(reference, hypothesis)) {
      if (pair.edit == Edit::kHit) {
        ++counts.hits;
        EXPECT_EQ(reference[static_cast<size_t>(pair.reference)],
                  hypothesis[static_cast<size_t>(pair.hypothesis)]);
      }
      if (pair.edit == Edit::kSubstitution) ++counts.substitutions;
      if (pair.edit == Edit::kDeletion) ++counts.deletions;
      if (pair.edit == Edit::kInsertion) ++counts.insertions;
      if (pair.reference >= 0) {
        EXPECT_EQ(pair.reference, next_reference++);
      }
      if (pair.hypothesis >= 0) {
        EXPECT_EQ(pair.hypothesis, next_hypothesis++);
      }
    }
    EXPECT_EQ(counts, count_edits(reference, hypothesis));
    EXPECT_EQ(next_reference, std::ssize(reference));
    EXPECT_EQ(next_hypothesis, std::ssize(hypothesis));
  }
}

TEST(EditAlignment, RefusesSegmentsThatAreTooLongForItsTable) {
  EXPECT_THROW(align_edits(Numbers(20'000, 1), Numbers(20'000, 2)), Error);
  EXPECT_EQ(align_edits(Numbers(20'000, 1), Numbers(20'000, 1)).size(), 20'000u);
}

}  // namespace
}  // namespace stretto::metrics
