#include "families/text/text_lookalikes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stretto::experiment {
namespace {

TEST(InvisibleLines, HaveSpacesOfUnicodeAlone) {
  for (const char* line : {"\u00A0", "\u200B", " \u00A0\t", "\u3000\uFEFF\r"})
    EXPECT_TRUE(is_invisible_line(line)) << line;
  for (const char* line : {"", " \t", "a", "\u00A0a", "a\u200B", "\xC2", "é"})
    EXPECT_FALSE(is_invisible_line(line)) << line;
}

/// What is doubted of files, which are read in these pieces.
std::vector<std::string> doubts_of(const std::vector<std::pair<std::string, std::string>>& pieces) {
  TextLookalikes looks;
  for (const auto& [path, text] : pieces) looks.read(path, text);
  Preflight found;
  looks.tell("data.train", found);
  std::vector<std::string> said;
  for (const auto& doubt : found.doubts) {
    EXPECT_EQ(doubt.key, "data.train");
    EXPECT_FALSE(doubt.hint.empty());
    said.push_back(doubt.what);
  }
  return said;
}

TEST(TextLookalikes, PlainTextIsNotDoubted) {
  EXPECT_TRUE(doubts_of({{"a.txt", "one\r\n\r\n\ntwo\rthree\n"}, {"b.txt", ""}}).empty());
  EXPECT_TRUE(doubts_of({}).empty());
}

TEST(TextLookalikes, LinesThatLookBlankAreCountedInAllFiles) {
  const auto said =
      doubts_of({{"a.txt", "one\n\u00A0\n"}, {"b.txt", "\u200B"}, {"b.txt", " \u00A0\n"}});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].find("3 lines of a.txt and 1 file more look blank"), 0U) << said[0];
}

TEST(TextLookalikes, LineEndsOfAnOldMacintoshWithOneLineEndAreTold) {
  const auto said = doubts_of({{"a.txt", "one\rtwo\rthree\r\n"}, {"b.txt", "one\rtwo\nthree\n"}});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].find("a.txt: 2 carriage returns inside of lines"), 0U) << said[0];
}

}  // namespace
}  // namespace stretto::experiment
