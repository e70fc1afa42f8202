// What the generated sounds of vowels and tones promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "examples/vowels/sounds.h"

namespace stretto::vowels {
namespace {

constexpr Sizes kFew{.train = 12, .valid = 4, .test = 2};

TEST(Vowels, AreTheSameForTheSameSeed) {
  EXPECT_EQ(generate(3, kFew).train[7].samples, generate(3, kFew).train[7].samples);
  EXPECT_NE(generate(3, kFew).train[7].samples, generate(4, kFew).train[7].samples);
}

TEST(Vowels, HaveWordsOfTheLexiconAndSpeakersInTurn) {
  const auto& words = lexicon();
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
  const Utterances made = generate(1, kFew);
  ASSERT_EQ(made.train.size(), kFew.train);
  for (size_t i = 0; i < made.train.size(); ++i) {
    EXPECT_EQ(made.train[i].speaker, i % kSpeakers.size());
    std::istringstream text(made.train[i].text);
    for (std::string word; text >> word;) {
      EXPECT_TRUE(std::binary_search(words.begin(), words.end(), word)) << word;
    }
  }
}

TEST(Vowels, NoTwoOfAPartAreAlike) {
  std::set<std::pair<std::string, size_t>> seen;
  for (const Utterance& utterance : generate(1, {.train = 200, .valid = 0, .test = 0}).train) {
    EXPECT_TRUE(seen.emplace(utterance.text, utterance.speaker).second) << utterance.text;
  }
}

TEST(Vowels, SamplesAreFiniteAndNotClipped) {
  for (const Utterance& utterance : generate(1, kFew).train) {
    float peak = 0;
    for (const float sample : utterance.samples) {
      ASSERT_TRUE(std::isfinite(sample));
      peak = std::max(peak, std::abs(sample));
    }
    EXPECT_GT(peak, 0.15f) << utterance.text;
    EXPECT_LT(peak, 0.5f) << utterance.text;
  }
}

TEST(Vowels, MoreLettersTakeLonger) {
  EXPECT_GT(spoken("kapo kapo", 0, 1).size(), spoken("kapo", 0, 1).size());
  EXPECT_GT(spoken("", 0, 1).size(), 0u) << "an utterance begins and ends with a pause";
}

TEST(Vowels, RefuseOtherLetters) {
  EXPECT_THROW(spoken("x", 0, 1), std::invalid_argument);
  EXPECT_THROW(spoken("a", kSpeakers.size(), 1), std::out_of_range);
}

TEST(Vowels, NamesHaveFourDigits) {
  EXPECT_EQ(name_of("train", 17), "wavs/train_0017.wav");
}

}  // namespace
}  // namespace stretto::vowels
