#include "data/separator.h"

#include <gtest/gtest.h>

namespace stretto::data {
namespace {

TEST(Separator, IsOneAsciiCharacterThatNeitherQuotesNorEndsALine) {
  for (const char* good : {"\t", ";", "|", ",", " "}) EXPECT_TRUE(is_separator(good)) << good;
  for (const char* bad : {"", ";;", "\"", "\r", "\n", "é"}) EXPECT_FALSE(is_separator(bad)) << bad;
  EXPECT_FALSE(is_separator(std::string_view("\0", 1)));
}

TEST(Separator, TheOneThatDividesALineMostIsMeant) {
  EXPECT_EQ(other_separator("a;b;c,d", '\t'), ';');
  EXPECT_EQ(other_separator("a;b;c,d", ';'), ',');
  EXPECT_EQ(other_separator("a\tb", ','), '\t');
  EXPECT_EQ(other_separator("a b", '\t'), '\0');
}

TEST(Separator, AdviceIsALineOfAConfiguration) {
  EXPECT_EQ(advice_on_separator('\t'), "set data.separator = \"\\t\"");
  EXPECT_EQ(advice_on_separator('|'), "set data.separator = \"|\"");
}

}  // namespace
}  // namespace stretto::data
