#include "text/word_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::text {
namespace {

/// One piece for each byte; counts the words.
class Bytes final : public WordModel {
 public:
  void cut(std::string_view word, std::vector<WordPiece>& pieces) const override {
    ++num_words;
    for (const char byte : word) pieces.push_back({static_cast<unsigned char>(byte), 1});
  }
  mutable int64_t num_words = 0;
};

std::vector<WordPiece> cut(WordCache& cache, const std::string& word) {
  const auto pieces = cache.cut(word);
  return {pieces.begin(), pieces.end()};
}

TEST(WordCache, CutsAWordOnce) {
  const Bytes model;
  WordCache cache(model);
  const std::vector<WordPiece> expected{{'a', 1}, {'b', 1}};
  EXPECT_EQ(cut(cache, "ab"), expected);
  EXPECT_EQ(cut(cache, "ba").size(), 2U);
  EXPECT_EQ(cut(cache, "ab"), expected);
  EXPECT_EQ(model.num_words, 2);
}

TEST(WordCache, StaysBounded) {
  const Bytes model;
  WordCache cache(model);
  constexpr int kWords = 200000;
  for (int i = 0; i < kWords; ++i) {
    const std::string word = std::to_string(i);
    ASSERT_EQ(cut(cache, word).size(), word.size());
  }
  EXPECT_EQ(model.num_words, kWords);
  EXPECT_EQ(cut(cache, "0").size(), 1U);
}

TEST(WordCache, LongWordsAreNotKept) {
  const Bytes model;
  WordCache cache(model);
  const std::string word(1000, 'x');
  EXPECT_EQ(cut(cache, word).size(), 1000U);
  EXPECT_EQ(cut(cache, word).size(), 1000U);
  EXPECT_EQ(model.num_words, 2);
}

}  // namespace
}  // namespace stretto::text
