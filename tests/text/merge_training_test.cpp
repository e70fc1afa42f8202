#include "text/merge_training.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stretto::text {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> pieces(const TrainedMerges& trained) {
  std::vector<std::string> out;
  for (const auto& [piece, id] : trained.vocab) {
    EXPECT_EQ(id, std::ssize(out));
    out.push_back(piece);
  }
  return out;
}

TEST(MergeTraining, JoinsTheMostFrequentPair) {
  // l o 7, o w 7, w e 2 + 6 = 8, e r 2, n e 6, e w 6: w e first? n-e-w-e-r: w e 6, e r 6, low 5,
  // lower 2.
  const WordCounts words{{"low", 5}, {"lower", 2}, {"newer", 6}};
  const TrainedMerges trained = train_merges(words, {.vocab_size = 100, .min_frequency = 1});
  // e r and w e both 8, ids e0 l1 n2 o3 r4 w5: e r is lower.
  ASSERT_GE(trained.merges.size(), 3U);
  EXPECT_EQ(trained.merges[0], std::make_pair(std::string("e"), std::string("r")));
  EXPECT_EQ(trained.merges[1], std::make_pair(std::string("w"), std::string("er")));
  EXPECT_EQ(trained.merges[2], std::make_pair(std::string("l"), std::string("o")));
  EXPECT_EQ(trained.vocab.back().first, "lower") << "2, after low (5) and newer (6)";
}

TEST(MergeTraining, IdsAreSpecialsThenCharactersThenPieces) {
  const TrainedMerges trained = train_merges(
      {{"ba", 3}, {"ab", 2}},
      {.vocab_size = 100, .min_frequency = 3, .continuing_prefix = "##", .specials = {"[UNK]"}});
  EXPECT_EQ(pieces(trained), (std::vector<std::string>{"[UNK]", "a", "b", "##a", "##b", "ba"}));
  EXPECT_EQ(trained.merges, (Merges{{"b", "##a"}})) << "a ##b is rarer than min_frequency";
}

TEST(MergeTraining, StopsAtTheSize) {
  EXPECT_EQ(train_merges({{"abcdef", 9}}, {.vocab_size = 8}).vocab.size(), 8U);
}

TEST(MergeTraining, TheAlphabetIsLimited) {
  const WordCounts words{{"aab", 5}, {"acb", 1}, {"ad", 1}};
  const TrainedMerges trained =
      train_merges(words, {.vocab_size = 100, .min_frequency = 9, .limit_alphabet = 3});
  EXPECT_EQ(pieces(trained), (std::vector<std::string>{"a", "b", "c"})) << "c before d of equals";
  const TrainedMerges joined = train_merges(
      {{"acb", 4}}, {.vocab_size = 9, .limit_alphabet = 2, .initial_alphabet = {"a", "b"}});
  EXPECT_EQ(joined.merges, (Merges{{"a", "b"}})) << "neighbours without what is left out";
}

TEST(MergeTraining, APieceHasABound) {
  const TrainedMerges trained = train_merges(
      {{"aaaaaaaa", 2}, {"bc", 1}}, {.vocab_size = 100, .min_frequency = 1, .max_piece_bytes = 3});
  EXPECT_EQ(trained.merges, (Merges{{"a", "a"}, {"b", "c"}})) << "aa aa would have four bytes";
}

TEST(MergeTraining, PairsMayOverlap) {
  const TrainedMerges trained = train_merges({{"aaaaa", 2}}, {.vocab_size = 100});
  EXPECT_EQ(trained.merges, (Merges{{"a", "a"}, {"aa", "a"}, {"aa", "aaa"}}));
}

}  // namespace
}  // namespace stretto::text
