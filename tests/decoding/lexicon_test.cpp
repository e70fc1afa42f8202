#include "decoding/lexicon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace stretto::decoding {
namespace {

using Sentence = std::vector<int64_t>;

double probability(const std::vector<Shortlist::Pair>& pairs, int64_t src, int64_t tgt) {
  const auto found = std::ranges::find_if(
      pairs, [&](const Shortlist::Pair& one) { return one.src == src && one.tgt == tgt; });
  return found == pairs.end() ? 0 : found->probability;
}

/// Sentences of a language in which token s is token 100 + s of the other, which turns them around.
Lexicon turned_language(int64_t sentences) {
  Lexicon lexicon;
  RandomStream draw(7);
  for (int64_t i = 0; i < sentences; ++i) {
    Sentence src, tgt;
    for (int64_t k = 0; k < 6; ++k) src.push_back(static_cast<int64_t>(20 * draw.uniform()));
    for (const int64_t token : src) tgt.insert(tgt.begin(), 100 + token);
    lexicon.add(src, tgt);
  }
  return lexicon;
}

// Two sentences, an empty word, one iteration: by hand.
TEST(Lexicon, TheFirstIterationIsThatOfTheFormula) {
  Lexicon lexicon;
  lexicon.add(Sentence{0, 1}, Sentence{5, 6});
  lexicon.add(Sentence{0}, Sentence{5});
  const auto pairs = lexicon.pairs({.iterations = 1, .least = 0});
  // t is 1/2 at first. Of the first pair each target token is shared by three source tokens, of the
  // second by two: token 0 gets 1/3 + 1/2 of 5, and 1/3 of 6.
  EXPECT_NEAR(probability(pairs, 0, 5), (1.0 / 3 + 1.0 / 2) / (2.0 / 3 + 1.0 / 2), 1e-12);
  EXPECT_NEAR(probability(pairs, 0, 6), (1.0 / 3) / (2.0 / 3 + 1.0 / 2), 1e-12);
  EXPECT_NEAR(probability(pairs, 1, 5), 0.5, 1e-12);
  EXPECT_EQ(probability(pairs, 2, 5), 0) << "the empty word is not told of";
}

TEST(Lexicon, FindsWhichTokensTranslateEachOther) {
  const auto pairs = turned_language(300).pairs({.iterations = 10});
  for (int64_t token = 0; token < 20; ++token) {
    const auto first = std::ranges::find(pairs, token, &Shortlist::Pair::src);
    ASSERT_NE(first, pairs.end()) << token;
    EXPECT_EQ(first->tgt, 100 + token);
    EXPECT_GT(first->probability, 0.8) << token;
  }
}

TEST(Lexicon, KeepsTheLikeliestOfEachTokenAndNoneBelowTheLeast) {
  const Lexicon lexicon = turned_language(50);
  const auto few = lexicon.pairs({.iterations = 2, .most_of_token = 3, .least = 0});
  for (int64_t token = 0; token < 20; ++token) {
    EXPECT_EQ(std::ranges::count(few, token, &Shortlist::Pair::src), 3) << token;
  }
  for (const auto& pair : lexicon.pairs({.iterations = 2, .least = 0.1})) {
    EXPECT_GE(pair.probability, 0.1);
  }
}

TEST(Lexicon, OfNothingThereIsNothing) {
  EXPECT_TRUE(Lexicon().pairs().empty());
  Lexicon empty;
  empty.add({}, Sentence{5});
  empty.add(Sentence{5}, {});
  EXPECT_TRUE(empty.pairs().empty());
}

}  // namespace
}  // namespace stretto::decoding
