#include "text/text_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/english_numbers.h"

namespace stretto::text {
namespace {

using stretto::testing::failure;

std::string by_rules(const std::vector<std::string>& rules, std::string_view text) {
  return TextRules(rules).apply(text);
}

TEST(TextRules, EachDoesOneThing) {
  EXPECT_EQ(by_rules({}, " A  b "), " A  b ");
  EXPECT_EQ(by_rules({"lower"}, "\xC3\x84 B"), "\xC3\xA4 b");
  EXPECT_EQ(by_rules({"upper"}, "stra\xC3\x9F\x65"), "STRASSE");
  EXPECT_EQ(by_rules({"spaces"}, " a \t b\xC2\xA0\n c "), "a b c");
  EXPECT_EQ(by_rules({"nfc"}, "e\xCC\x81"), "\xC3\xA9");
  EXPECT_EQ(by_rules({"nfkc"}, "\xEF\xAC\x81ne \xC2\xBD"), "fine 1\xE2\x81\x84\x32");
  EXPECT_EQ(by_rules({"accents"}, "\xC3\xA9t\xC3\xA9 \xC3\xB8"), "ete \xC3\xB8");
  EXPECT_EQ(by_rules({"quotes"}, "it\xE2\x80\x99s \xE2\x80\x9Cso\xE2\x80\x9D"), "it's \"so\"");
  EXPECT_EQ(by_rules({"marks"}, "[noise] well <unk> a < b"), "  well   a < b");
  EXPECT_EQ(by_rules({"marks"}, "] > a [b< c> d[ <e"), "] > a [b  d[ <e");
  EXPECT_EQ(by_rules({"punctuation"}, "'Well,' he's well-read; rock 'n' roll!"),
            "Well he's well read rock n roll");
}

TEST(TextRules, TheirOrderIsThatOfTheList) {
  EXPECT_EQ(by_rules({"titles_en", "lower", "punctuation", "spaces"}, "Mr. Smith -- the DR."),
            "mister smith the doctor");
  EXPECT_EQ(by_rules({"punctuation", "titles_en"}, "Mr. Smith"), "Mr Smith");
}

TEST(TextRules, BrokenTextIsRepaired) {
  EXPECT_EQ(by_rules({"lower"}, "A\xFF"), "a\xEF\xBF\xBD");
}

TEST(TextRules, UnknownNamesAreRefused) {
  const auto error = failure(ExitCode::kUsage, [] { TextRules({"lower", "lowercase"}); });
  EXPECT_STREQ(error.what(), "no rule for texts is called `lowercase`");
  EXPECT_EQ(error.advice().find("known: nfc, nfkc, lower"), 0U);
}

TEST(EnglishNumbers, Cardinals) {
  EXPECT_EQ(number_words(0), "zero");
  EXPECT_EQ(number_words(13), "thirteen");
  EXPECT_EQ(number_words(40), "forty");
  EXPECT_EQ(number_words(110), "one hundred ten");
  EXPECT_EQ(number_words(123456), "one hundred twenty-three thousand four hundred fifty-six");
  EXPECT_EQ(number_words(2000000000007), "two trillion seven");
}

TEST(EnglishNumbers, Ordinals) {
  EXPECT_EQ(ordinal_words(1), "first");
  EXPECT_EQ(ordinal_words(12), "twelfth");
  EXPECT_EQ(ordinal_words(20), "twentieth");
  EXPECT_EQ(ordinal_words(22), "twenty-second");
  EXPECT_EQ(ordinal_words(100), "one hundredth");
}

TEST(EnglishNumbers, NumbersOfATextAreSaid) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"in 1455, at 7", "in fourteen fifty-five, at seven"},
           {"1905 and 2004, 2000, 1900, 2015",
            "nineteen oh five and two thousand four, two thousand, nineteen hundred, "
            "twenty fifteen"},
           {"1,024 men", "one thousand twenty-four men"},
           {"1, 2", "one, two"},
           {"the 21st.", "the twenty-first."},
           {"3.14", "three point one four"},
           {"$2.50 and $1", "two dollars, fifty cents and one dollar"},
           {"\xC2\xA3\x33", "three pounds"},
           {"007", "zero zero seven"},
           {"10km", "ten km"},
           {"In 1999.", "In nineteen ninety-nine."},
           {"$ and \xC2\xA3 alone", "$ and \xC2\xA3 alone"},
           {"1234567890123456",
            "one two three four five six seven eight nine zero one two three "
            "four five six"},
       }) {
    EXPECT_EQ(with_number_words(text), said);
  }
}

}  // namespace
}  // namespace stretto::text
