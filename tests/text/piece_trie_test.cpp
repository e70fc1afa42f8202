#include "text/piece_trie.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace stretto::text
