// What the generated reviews promise.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "examples/reviews/opinions.h"

namespace stretto::reviews {
namespace {

const Corpus& shipped_reviews() {
  static const Corpus corpus = generate(1);
  return corpus;
}

TEST(Reviews, HaveTheSizesThatTheyPromise) {
  EXPECT_EQ(shipped_reviews().train.size(), CorpusSizes{}.train);
  EXPECT_EQ(shipped_reviews().valid.size(), CorpusSizes{}.valid);
  EXPECT_EQ(shipped_reviews().test.size(), CorpusSizes{}.test);
}

TEST(Reviews, OccurOnce) {
  std::set<std::string> seen;
  for (const auto* part :
       {&shipped_reviews().train, &shipped_reviews().valid, &shipped_reviews().test}) {
    for (const Review& review : *part) EXPECT_TRUE(seen.insert(review.text).second) << review.text;
  }
}

TEST(Reviews, HaveEachLabelOftenAndStarsThatFitIt) {
  std::map<std::string, size_t> labels;
  for (const Review& review : shipped_reviews().train) {
    ++labels[review.label];
    EXPECT_EQ(review.label == "good", review.stars == 5) << review.text;
    EXPECT_EQ(review.label == "bad", review.stars == 1) << review.text;
    EXPECT_NE(review.text.find(review.about), std::string::npos) << review.text;
    EXPECT_TRUE(review.label == "mixed" || review.verdict == review.label) << review.text;
  }
  ASSERT_EQ(labels.size(), 3u);
  for (const auto& [label, count] : labels) EXPECT_GT(count, 1200u) << label;
}

TEST(Reviews, AreTheSameForTheSameSeed) {
  const CorpusSizes few{.train = 5, .valid = 2, .test = 2};
  EXPECT_EQ(tsv(generate(3, few).train), tsv(generate(3, few).train));
  EXPECT_NE(tsv(generate(3, few).train), tsv(generate(4, few).train));
  EXPECT_TRUE(tsv(generate(3, few).valid).starts_with("text\tlabel\tstars\tabout\tverdict\n"));
}

}  // namespace
}  // namespace stretto::reviews
