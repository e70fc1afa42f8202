#include "text/word_splits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::text {
namespace {

using Words = std::vector<std::string>;

template <class Split>
Words words_of(Split split, const std::string& text) {
  std::vector<ByteRange> ranges;
  split(text, ranges);
  Words words;
  for (const ByteRange& range : ranges) words.emplace_back(range.of(text));
  return words;
}

Words by_punctuation(const std::string& text) {
  return words_of(split_at_punctuation, text);
}
Words by_class(const std::string& text) {
  return words_of(split_by_class, text);
}

TEST(WordSplits, PunctuationStandsAlone) {
  EXPECT_EQ(by_punctuation(" don't  stop!!\t"), (Words{"don", "'", "t", "stop", "!", "!"}));
  EXPECT_EQ(by_punctuation("a。b\u3000c"), (Words{"a", "。", "b", "c"}));
  EXPECT_EQ(by_punctuation(""), Words{});
}

TEST(WordSplits, AWordOfAClassHasTheSpaceBeforeIt) {
  EXPECT_EQ(by_class("Hello world 12 +-"), (Words{"Hello", " world", " 12", " +-"}));
  EXPECT_EQ(by_class("a1b中2"), (Words{"a", "1", "b中", "2"}));
}

TEST(WordSplits, ContractionsAreWords) {
  EXPECT_EQ(by_class("we'll it's 'Tis'd"), (Words{"we", "'ll", " it", "'s", " '", "Tis", "'d"}));
  EXPECT_EQ(by_class("I'm you're we've don't"),
            (Words{"I", "'m", " you", "'re", " we", "'ve", " don", "'t"}));
  EXPECT_EQ(by_class("'x"), (Words{"'", "x"}));
  EXPECT_EQ(by_class("I'VE"), (Words{"I", "'", "VE"}));
  EXPECT_EQ(by_class("!'s"), (Words{"!'", "s"})) << "the run of symbols began first";
}

TEST(WordSplits, SpaceLeavesItsLastCharacterToTheWord) {
  EXPECT_EQ(by_class("a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(by_class("a \t\tb"), (Words{"a", " \t", "\t", "b"}));
  EXPECT_EQ(by_class("a  "), (Words{"a", "  "}));
  EXPECT_EQ(by_class("\u3000a"), (Words{"\u3000", "a"}));
  EXPECT_EQ(by_class(" "), (Words{" "}));
}

}  // namespace
}  // namespace stretto::text
