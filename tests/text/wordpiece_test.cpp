#include "text/wordpiece.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::text {
namespace {

using Pieces = std::vector<WordPiece>;

const PieceIds kVocab{{"[UNK]", 0}, {"un", 1},  {"##aff", 2}, {"##able", 3},
                      {"##a", 4},   {"una", 5}, {"é", 6},     {"##é", 7}};

Pieces cut(const std::string& word, const WordPieceOptions& options = {}) {
  Pieces pieces;
  WordPieceModel(kVocab, options).cut(word, pieces);
  return pieces;
}

TEST(WordPiece, TakesTheLongestPieceFirst) {
  EXPECT_EQ(cut("unaffable"), Pieces({{0, 9}})) << "`una` leaves `ffable`, which no piece begins";
  EXPECT_EQ(cut("unaaff"), Pieces({{5, 3}, {2, 3}}));
  EXPECT_EQ(cut("unable"), Pieces({{0, 6}}));
  EXPECT_EQ(cut("éé"), Pieces({{6, 2}, {7, 2}}));
}

TEST(WordPiece, AWordThatCannotBeSpeltIsOneUnknown) {
  EXPECT_EQ(cut("unx"), Pieces({{0, 3}}));
  EXPECT_EQ(cut("aff"), Pieces({{0, 3}})) << "only inside of a word";
}

TEST(WordPiece, ALongWordIsUnknown) {
  std::string word = "é";
  for (int i = 1; i < 100; ++i) word += "é";
  EXPECT_EQ(cut(word).size(), 100U) << "characters count, not bytes";
  EXPECT_EQ(cut(word + "é"), Pieces({{0, 202}}));
  EXPECT_EQ(cut("unaaff", {.max_word_chars = 5}), Pieces({{0, 6}}));
}

TEST(WordPiece, ThePrefixIsAnOption) {
  EXPECT_EQ(cut("unun", {.continuing_prefix = ""}), Pieces({{1, 2}, {1, 2}}));
}

}  // namespace
}  // namespace stretto::text
