#include "text/ngram/hot_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::text {
namespace {

/// What a text has gained, with its end.
float bonus_of(const HotWords& hot, const std::string& text) {
  uint32_t state = hot.start();
  float bonus = 0;
  for (const char c : text + " ") {
    const HotWords::Step step = hot.next(state, std::string(1, c));
    state = step.state;
    bonus += step.gained;
  }
  return bonus;
}

TEST(HotWords, WholeWordsAndPhrasesCount) {
  const HotWords hot(std::vector<std::string>{"cat", "new york"}, 6);
  EXPECT_NEAR(bonus_of(hot, "the cat sat"), 6, 1e-5);
  EXPECT_NEAR(bonus_of(hot, "cat cat"), 12, 1e-5);
  EXPECT_NEAR(bonus_of(hot, "concat cats"), 0, 1e-5);
  EXPECT_NEAR(bonus_of(hot, "in new york"), 6, 1e-5);
  EXPECT_NEAR(bonus_of(hot, "new new york cat"), 12, 1e-5);
  EXPECT_NEAR(bonus_of(hot, "new yorks"), 0, 1e-5);
  EXPECT_NEAR(bonus_of(hot, ""), 0, 1e-5);
}

TEST(HotWords, APartCountsUntilItDoesNotGoOn) {
  const HotWords hot(std::vector<std::string>{"cat"}, 4);
  HotWords::Step step = hot.next(hot.start(), "c");
  EXPECT_NEAR(step.gained, 1, 1e-5);
  step = hot.next(step.state, "a");
  EXPECT_NEAR(step.gained, 1, 1e-5);
  EXPECT_NEAR(hot.next(step.state, "b").gained, -2, 1e-5);
  EXPECT_NEAR(hot.next(step.state, "t ").gained, 2, 1e-5);
}

TEST(HotWords, PiecesOfAnySizeGainTheSame) {
  const HotWords hot(std::vector<std::string>{"banana split", "banana"}, 3);
  const std::string text = "a banana split of bananas and banana ";
  const HotWords::Step end = hot.next(hot.start(), text);
  const float whole = end.gained - hot.pending(end.state);
  uint32_t state = hot.start();
  float parts = 0;
  for (size_t i = 0; i < text.size(); i += 3) {
    const HotWords::Step step = hot.next(state, text.substr(i, 3));
    state = step.state;
    parts += step.gained;
  }
  EXPECT_NEAR(whole, parts - hot.pending(state), 1e-4);
  EXPECT_NEAR(whole, 9, 1e-4) << "banana, banana split, banana";
}

TEST(HotWords, AnEmptyPhraseIsRefused) {
  testing::failure(ExitCode::kUsage, [] { HotWords(std::vector<std::string>{" "}, 1); });
  EXPECT_TRUE(HotWords().empty());
}

}  // namespace
}  // namespace stretto::text
