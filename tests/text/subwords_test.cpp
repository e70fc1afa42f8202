#include "text/subwords.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stretto::text {
namespace {

struct Split {
  Subwords subwords;
  std::string pieces;
};

const std::vector<Split> kOneSentence{
    {Subwords::kBpe, "the hou@@ se ne@@ xt to i@@ t ."},
    {Subwords::kSentencePiece, "▁the ▁hou se ▁ne xt ▁to ▁i t ▁."},
    {Subwords::kWordPiece, "the hou ##se ne ##xt to i ##t ."},
    {Subwords::kNone, "the house next to it ."},
};

TEST(JoinSubwords, GivesTheTextBackWhateverTheMark) {
  for (const Split& split : kOneSentence) {
    EXPECT_EQ(join_subwords(split.pieces, split.subwords), "the house next to it .")
        << name_of(split.subwords);
  }
}

TEST(JoinSubwords, LeavesNoMarkOfAWordThatIsCutOff) {
  EXPECT_EQ(join_subwords("the hou@@", Subwords::kBpe), "the hou");
  EXPECT_EQ(join_subwords("##se is red", Subwords::kWordPiece), "se is red");
  EXPECT_EQ(join_subwords("se ▁is", Subwords::kSentencePiece), "se is");
  for (const auto subwords : {Subwords::kBpe, Subwords::kSentencePiece, Subwords::kWordPiece}) {
    EXPECT_EQ(join_subwords("", subwords), "");
  }
}

TEST(JoinSubwords, TouchesMarksOnlyWhereTheyAreMarks) {
  EXPECT_EQ(join_subwords("a@@b @ @@c", Subwords::kBpe), "a@@b @ @@c");
  EXPECT_EQ(join_subwords("a##b # c##", Subwords::kWordPiece), "a##b # c##");
  EXPECT_EQ(join_subwords("hou@@ ##se ▁x", Subwords::kNone), "hou@@ ##se ▁x");
}

TEST(FindSubwords, NamesTheMarkThatTokensCarry) {
  for (const Split& split : kOneSentence) {
    std::vector<std::string> tokens;
    for (size_t begin = 0, end = 0; begin < split.pieces.size(); begin = end + 1) {
      end = std::min(split.pieces.find(' ', begin), split.pieces.size());
      tokens.push_back(split.pieces.substr(begin, end - begin));
    }
    EXPECT_EQ(find_subwords(tokens), split.subwords) << split.pieces;
  }
}

TEST(FindSubwords, AFewOddTokensAreNoMark) {
  std::vector<std::string> tokens(100, "word");
  tokens[0] = "me@@";
  tokens[1] = "##";
  tokens[2] = "@@";
  EXPECT_EQ(find_subwords(tokens), Subwords::kNone);
  for (size_t i = 0; i < 5; ++i) tokens[i] = "pie@@";
  EXPECT_EQ(find_subwords(tokens), Subwords::kBpe);
  EXPECT_EQ(find_subwords({}), Subwords::kNone);
}

TEST(Subwords, HaveNames) {
  for (const std::string& name : subwords_names()) {
    EXPECT_EQ(name_of(subwords_named(name)), name);
  }
  EXPECT_THROW(subwords_named("auto"), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::text
