#include "metrics/tokenizers.h"

#include <gtest/gtest.h>

#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

using Words = std::vector<std::u32string>;

Words words(BleuTokenizer tokenize, const std::u32string& text) {
  return split_words(tokenize(text));
}

TEST(BleuTokenizer13a, PartsAsciiPunctuationButNotInsideNumbers) {
  EXPECT_EQ(words(tokenize_13a, U"He said (twice): \"no\"."),
            (Words{U"He", U"said", U"(", U"twice", U")", U":", U"\"", U"no", U"\"", U"."}));
  EXPECT_EQ(words(tokenize_13a, U"1,000.50 a,b 5."),
            (Words{U"1,000.50", U"a", U",", U"b", U"5", U"."}));
  EXPECT_EQ(words(tokenize_13a, U"don't"), (Words{U"don't"}));
  EXPECT_EQ(words(tokenize_13a, U"„so“"), (Words{U"„so“"}));
}

TEST(BleuTokenizer13a, PartsADashAfterADigitOnly) {
  EXPECT_EQ(words(tokenize_13a, U"well-known 2021-11"),
            (Words{U"well-known", U"2021", U"-", U"11"}));
}

TEST(BleuTokenizer13a, ReadsEntitiesBackAndDropsSkippedMarks) {
  EXPECT_EQ(words(tokenize_13a, U"a&lt;b&amp;c<skipped>d"), (Words{U"a", U"<", U"b", U"&", U"cd"}));
  EXPECT_EQ(words(tokenize_13a, U"&amp;lt;"), (Words{U"<"})) << "in this order, as mteval does";
}

TEST(BleuTokenizerIntl, PartsUnicodePunctuationAndSymbols) {
  EXPECT_EQ(words(tokenize_intl, U"„so“ 5€"), (Words{U"„", U"so", U"“", U"5", U"€"}));
  EXPECT_EQ(words(tokenize_intl, U"句子。"), (Words{U"句子", U"。"}));
  EXPECT_EQ(words(tokenize_intl, U"don't"), (Words{U"don", U"'", U"t"}));
}

TEST(BleuTokenizerIntl, LeavesPunctuationBetweenNumbersAndAStopAfterAFinalOne) {
  EXPECT_EQ(words(tokenize_intl, U"1,000 in 2021."), (Words{U"1,000", U"in", U"2021."}));
  EXPECT_EQ(words(tokenize_intl, U"٣٫٥"), (Words{U"٣٫٥"})) << "Arabic digits are numbers too";
}

TEST(BleuTokenizerNone, LeavesWordsAlone) {
  EXPECT_EQ(words(tokenize_none, U" a.b  c\u3000d "), (Words{U"a.b", U"c", U"d"}));
}

TEST(BleuTokenizerChar, MakesEveryCodePointAWord) {
  EXPECT_EQ(words(tokenize_char, U"中 a😀"), (Words{U"中", U"a", U"😀"}));
}

TEST(TextUnits, SplitWhereWhiteSpaceIsInPython) {
  EXPECT_TRUE(is_space(0x1C));
  EXPECT_TRUE(is_space(0x85));
  EXPECT_TRUE(is_space(0x3000));
  EXPECT_FALSE(is_space(0x200B)) << "the zero-width space is not white space";
  EXPECT_EQ(rstrip(U"a \u00A0"), U"a");
}

TEST(TextUnits, NgramsOfOneOrderDoNotCollide) {
  const std::vector<uint32_t> symbols = {0, 0, 0x10FFFF, 0, 0, 0, 0x10FFFF, 1, 0};
  const NgramCounts counts = count_ngrams(symbols, 6, SymbolBits::kCharacter);
  EXPECT_EQ(counts.total, 4);
  EXPECT_EQ(counts.ngrams.size(), 4u);
  EXPECT_EQ(count_ngrams(symbols, 1, SymbolBits::kCharacter).ngrams.size(), 3u);
  EXPECT_EQ(count_ngrams(symbols, 10, SymbolBits::kCharacter).total, 0);
}

}  // namespace
}  // namespace stretto::metrics
