#include "text/byte_bpe.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace stretto::text {
namespace {

using Pieces = std::vector<WordPiece>;

TEST(ByteAlphabet, IsGpt2s) {
  const auto& alphabet = byte_alphabet();
  EXPECT_EQ(alphabet['a'], "a");
  EXPECT_EQ(alphabet[' '], "Ġ");
  EXPECT_EQ(alphabet['\n'], "Ċ");
  EXPECT_EQ(alphabet[0], "Ā");
  EXPECT_EQ(alphabet[0xAD], "Ń");
  EXPECT_EQ(alphabet[0xFF], "ÿ");
  EXPECT_EQ(std::set<std::string>(alphabet.begin(), alphabet.end()).size(), 256U);
}

TEST(ByteAlphabet, SpellsBytes) {
  EXPECT_EQ(bytes_of_piece("ĠÃ©"), " é");
  EXPECT_EQ(bytes_of_piece("中"), std::nullopt);
}

// a b c ab bc abc cab
const PieceIds kLetters{{"a", 0},  {"b", 1},   {"c", 2},  {"ab", 3},
                        {"bc", 4}, {"abc", 5}, {"ca", 6}, {"??", 7}};

Pieces cut(const std::vector<ByteBpeModel::Merge>& merges, const std::string& word,
           const ByteBpeOptions& options = {}) {
  Pieces pieces;
  ByteBpeModel(kLetters, merges, options).cut(word, pieces);
  return pieces;
}

TEST(ByteBpe, JoinsTheEarliestMergeFirst) {
  EXPECT_EQ(cut({{1, 2, 4}, {0, 1, 3}}, "abc"), Pieces({{0, 1}, {4, 2}}));
  EXPECT_EQ(cut({{0, 1, 3}, {1, 2, 4}}, "abc"), Pieces({{3, 2}, {2, 1}}));
  EXPECT_EQ(cut({{0, 1, 3}, {3, 2, 5}}, "abcab"), Pieces({{5, 3}, {3, 2}}));
}

TEST(ByteBpe, OfEqualPairsTheLeftmostIsJoined) {
  // aaa with a a -> ab: the first two.
  EXPECT_EQ(cut({{0, 0, 3}}, "aaa"), Pieces({{3, 2}, {0, 1}}));
}

TEST(ByteBpe, ANewPairOfAnEarlierMergeGoesFirst) {
  // bc first (rank 1), which opens a bc -> abc (rank 0), before ca (rank 2).
  EXPECT_EQ(cut({{0, 4, 5}, {1, 2, 4}, {2, 0, 6}}, "abca"), Pieces({{5, 3}, {0, 1}}));
}

TEST(ByteBpe, BytesWithoutAPieceAreUnknownOrLeftOut) {
  EXPECT_EQ(cut({}, "axyb", {.unk_id = 7}), Pieces({{0, 1}, {7, 1}, {7, 1}, {1, 1}}));
  EXPECT_EQ(cut({}, "axyb", {.unk_id = 7, .fuse_unk = true}), Pieces({{0, 1}, {7, 2}, {1, 1}}));
  EXPECT_EQ(cut({{0, 1, 3}}, "xayb"), Pieces({{3, 4}})) << "neighbours without what is left out";
  EXPECT_EQ(cut({}, "xy"), Pieces{});
}

TEST(ByteBpe, AWholeWordMayGoBeforeMerges) {
  EXPECT_EQ(cut({}, "abc"), Pieces({{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(cut({}, "abc", {.ignore_merges = true}), Pieces({{5, 3}}));
  EXPECT_EQ(cut({}, "abca", {.ignore_merges = true}).size(), 4U);
}

TEST(ByteBpe, LongWordsTakeNoSquareOfTheirLength) {
  const std::string word(1 << 20, 'a');
  EXPECT_EQ(cut({{0, 0, 3}, {3, 3, 5}}, word).size(), word.size() / 4);
}

}  // namespace
}  // namespace stretto::text
