#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace stretto {
namespace {

TEST(Text, ClosestFindsPlausibleSlipsOnly) {
  const std::vector<std::string> names{"warmup_steps", "max_steps", "lr", "update_freq"};
  EXPECT_EQ(closest("warmup_step", names), "warmup_steps");
  EXPECT_EQ(closest("wramup_steps", names), "warmup_steps");  // swapped neighbours cost one
  EXPECT_EQ(closest("rl", names), "lr");
  EXPECT_EQ(closest("lrr", names), "lr");
  EXPECT_EQ(closest("momentum", names), "");
  EXPECT_EQ(closest("", names), "");
  EXPECT_EQ(closest("xy", names), "");
  EXPECT_EQ(closest(std::string(1 << 20, 'a'), names), "");
}

TEST(Text, ClosestPrefersTheNearerName) {
  const std::vector<std::string> names{"num_heads", "num_layers", "num_layer"};
  EXPECT_EQ(closest("num_layr", names), "num_layer");
}

// An alignment of two names is the whole table here, without a bound that spares it.
size_t distance_by_table(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      d[i][j] = i == 0 ? j : i;
      if (i == 0 || j == 0) continue;
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

TEST(Text, ASlipIsWhatTheWholeTableOfDistancesSays) {
  std::mt19937 generator(7);
  const auto name = [&] {
    std::string text(generator() % 9, 'a');
    for (char& c : text) c = "abc_"[generator() % 4];
    return text;
  };
  size_t slips = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string a = name(), b = name();
    const size_t limit = std::max<size_t>(1, std::max(a.size(), b.size()) / 3);
    EXPECT_EQ(is_slip(a, b), distance_by_table(a, b) <= limit) << a << " and " << b;
    slips += is_slip(a, b) ? 1 : 0;
  }
  EXPECT_GT(slips, 100u);
  EXPECT_LT(slips, 2900u);
}

TEST(Text, SplitAndJoinUndoEachOther) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(join(split("a,,b,", ','), ","), "a,,b,");
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, WordsStandBetweenSpaces) {
  EXPECT_EQ(split_words("  a bc\td   e "), (std::vector<std::string>{"a", "bc\td", "e"}));
  EXPECT_TRUE(split_words("").empty());
  EXPECT_TRUE(split_words("   ").empty());
}

TEST(Text, NumbersAreWrittenForPeople) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(-123456), "-123,456");
  EXPECT_EQ(with_thousands(-999), "-999");
  EXPECT_EQ(with_thousands(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(340 * 1024), "340 KiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(1288490189), "1.2 GiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(human_duration(4.2), "4.2s");
  EXPECT_EQ(human_duration(59.99), "1m 00s");
  EXPECT_EQ(human_duration(200), "3m 20s");
  EXPECT_EQ(human_duration(7500), "2h 05m");
  EXPECT_EQ(human_duration(3 * 86400 + 4 * 3600), "3d 04h");
  EXPECT_EQ(human_duration(-4.2), "-4.2s");
  EXPECT_EQ(human_duration(INFINITY), "?");
  EXPECT_EQ(fixed(1.005, 1), "1.0");
  EXPECT_EQ(fixed(-2.5, 3), "-2.500");
}

TEST(Text, CountedNounsHaveTheFormOfTheirNumber) {
  EXPECT_EQ(counted(1, "checkpoint"), "1 checkpoint");
  EXPECT_EQ(counted(0, "checkpoint"), "0 checkpoints");
  EXPECT_EQ(counted(1234, "line"), "1,234 lines");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(counted(2, "hypothesis"), "2 hypotheses");
  EXPECT_EQ(counted(3, "pair of lines", "pairs of lines"), "3 pairs of lines");
}

TEST(Text, ShortestReadsBackToTheSameNumber) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1.0), "1");
  for (const double x : {1.0 / 3, 1e-300, 6.02214076e23, -0.0, 5e-324}) {
    EXPECT_EQ(std::strtod(shortest(x).c_str(), nullptr), x);
  }
}

TEST(Text, OfASmallShareOnlyATrueZeroIsZero) {
  for (const auto& [share, text] : {std::pair{0.0, "0 %"},
                                    {0.00001, "below 0.01 %"},
                                    {0.0045, "0.45 %"},
                                    {0.031, "3.10 %"},
                                    {0.25, "25.0 %"},
                                    {1.0, "100.0 %"}}) {
    EXPECT_EQ(percent_text(share), text);
  }
}

TEST(Text, Utf8IsCheckedAsTheStandardSays) {
  for (const char* good : {"", "a", "é", "€", "𝄞", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xC3", "\xE2\x82",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "ab\xFF", "\xE2\x28\xA1"}) {
    for (size_t before = 0; before < 17; ++before) {
      const std::string text = std::string(before, 'x') + bad + "twelve bytes";
      EXPECT_FALSE(is_valid_utf8(text)) << printable(text);
    }
    EXPECT_FALSE(is_valid_utf8(bad)) << printable(bad);
  }
}

TEST(Text, PrintableNeverLetsControlCharactersThrough) {
  EXPECT_EQ(printable("a\tb é"), "a\tb é");
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xFFz"), "\\xffz");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
}

TEST(Text, PrintableCutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("aé", 2), "a…");
  EXPECT_EQ(printable("abc", 3), "abc");
}

}  // namespace
}  // namespace stretto
