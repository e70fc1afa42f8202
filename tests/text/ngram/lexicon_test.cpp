#include "text/ngram/lexicon.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::text {
namespace {

const std::vector<std::string> kLexiconLetters = {"a", "b", "c", "|"};

std::vector<int32_t> spell_letters(std::string_view word) {
  std::vector<int32_t> labels;
  for (const char c : word) {
    if (c < 'a' || c > 'c') return {};
    labels.push_back(c - 'a');
  }
  return labels;
}

TEST(Lexicon, AWordHasItsLabelsBehindItOrTheSpellers) {
  int64_t left_out = 0;
  const auto entries = parse_lexicon("ab\ncab\tc a b |\nx\n\nab b a\n", "words", kLexiconLetters,
                                     spell_letters, left_out);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].labels, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(entries[1].word, "cab");
  EXPECT_EQ(entries[1].labels, (std::vector<int32_t>{2, 0, 1, 3}));
  EXPECT_EQ(entries[2].labels, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(left_out, 1) << "x";
}

TEST(Lexicon, UnknownLabelsAreToldWithTheirLine) {
  int64_t left_out = 0;
  const auto message =
      testing::failure(ExitCode::kBadData, [&] {
        parse_lexicon("ab\nba b z\n", "words", kLexiconLetters, spell_letters, left_out);
      }).message();
  EXPECT_NE(message.find("words:2: the model has no label `z`"), std::string::npos) << message;
  testing::failure(ExitCode::kBadData, [&] {
    parse_lexicon("x\n", "words", kLexiconLetters, spell_letters, left_out);
  });
}

TEST(Lexicon, TheTrieHasEveryWordAndTheBestScoreBelowEachNode) {
  const std::vector<LexiconEntry> entries = {
      {"abc", {0, 1, 2}}, {"ab", {0, 1}}, {"homophone", {0, 1}}, {"b", {1}}};
  const std::vector<float> scores = {-1, -3, -2, -5};
  const LexiconTrie trie(entries, scores);
  EXPECT_EQ(trie.num_nodes(), 5U);
  EXPECT_EQ(trie.best_below(LexiconTrie::kRoot), -1);
  const uint32_t a = trie.child(LexiconTrie::kRoot, 0), b = trie.child(LexiconTrie::kRoot, 1);
  ASSERT_NE(a, LexiconTrie::kNone);
  ASSERT_NE(b, LexiconTrie::kNone);
  EXPECT_EQ(trie.best_below(b), -5);
  EXPECT_TRUE(trie.words(a).empty());
  ASSERT_EQ(trie.words(b).size(), 1U);
  EXPECT_EQ(trie.words(b)[0], 3U);
  const uint32_t ab = trie.child(a, 1);
  ASSERT_EQ(trie.words(ab).size(), 2U);
  EXPECT_EQ(trie.words(ab)[0], 1U);
  EXPECT_EQ(trie.words(ab)[1], 2U);
  EXPECT_EQ(trie.best_below(ab), -1);
  EXPECT_EQ(trie.child(ab, 0), LexiconTrie::kNone);
  EXPECT_EQ(trie.words(trie.child(ab, 2))[0], 0U);
}

TEST(Lexicon, AnEmptyTrieHasARootAlone) {
  const LexiconTrie trie;
  EXPECT_TRUE(trie.children(LexiconTrie::kRoot).empty());
  EXPECT_TRUE(trie.words(LexiconTrie::kRoot).empty());
}

}  // namespace
}  // namespace stretto::text
