#include "text/piece_trie.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/base/held_memory.h"

namespace stretto::text {
namespace {

PieceTrie trie_of(std::vector<std::pair<std::string_view, int64_t>> pieces) {
  return PieceTrie(std::move(pieces));
}

TEST(PieceTrie, FindsTheLongestPieceAtTheBeginning) {
  const PieceTrie trie = trie_of({{"a", 1}, {"abc", 2}, {"b", 3}, {"中", 4}});
  const auto expect = [&](std::string_view text, int64_t id, size_t length) {
    const auto match = trie.longest(text);
    EXPECT_EQ(match.id, id) << text;
    EXPECT_EQ(match.length, length) << text;
  };
  expect("abcd", 2, 3);
  expect("abd", 1, 1);
  expect("b", 3, 1);
  expect("中文", 4, 3);
  expect("\xE4\xB8", -1, 0);
  expect("x", -1, 0);
  expect("", -1, 0);
}

TEST(PieceTrie, OfEqualPiecesTheLastOneCounts) {
  EXPECT_EQ(trie_of({{"a", 1}, {"a", 2}, {"", 3}}).longest("a").id, 2);
}

TEST(PieceTrie, MayBeEmpty) {
  EXPECT_EQ(PieceTrie().longest("a").id, -1);
  EXPECT_FALSE(trie_of({}).begins('a'));
}

TEST(PieceTrie, HoldsLongPieces) {
  const std::string piece(1 << 20, 'x');
  EXPECT_EQ(trie_of({{piece, 7}}).longest(piece + "y").length, piece.size());
}

TEST(PieceTrie, TakesNoMoreMemoryThanItsPieces) {
  const std::string piece(1 << 20, 'x');
  const size_t before = stretto::testing::held_memory();
  const PieceTrie trie = trie_of({{piece, 7}, {"xa", 8}});
  EXPECT_LT(stretto::testing::held_memory() - before, 3 * piece.size());
  EXPECT_EQ(trie.longest("xab").id, 8);
}

// Pieces that end within the common part of others, and such that part there.
TEST(PieceTrie, AgreesWithASearchThroughAllPieces) {
  const std::vector<std::string> alphabet{"a", "b", "ab", "ba"};
  std::vector<std::string> pieces;
  uint64_t state = 1;
  const auto below = [&](uint64_t count) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % count;
  };
  const auto word = [&](uint64_t parts) {
    std::string text;
    for (uint64_t i = 0; i <= parts; ++i) text += alphabet[below(alphabet.size())];
    return text;
  };
  for (int i = 0; i < 60; ++i) pieces.push_back(word(below(6)));
  std::vector<std::pair<std::string_view, int64_t>> pairs;
  for (size_t i = 0; i < pieces.size(); ++i) pairs.emplace_back(pieces[i], i);
  const PieceTrie trie = trie_of(pairs);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = word(below(8));
    PieceTrie::Match best;
    for (const auto& [piece, id] : pairs) {
      if (text.starts_with(piece) && piece.size() >= best.length) best = {id, piece.size()};
    }
    EXPECT_EQ(trie.longest(text).id, best.id) << text;
    EXPECT_EQ(trie.longest(text).length, best.length) << text;
  }
}

}  // namespace
}  // namespace stretto::text
