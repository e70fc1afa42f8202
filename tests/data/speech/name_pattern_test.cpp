#include "data/speech/name_pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;

TEST(NamesOfSounds, PartsAreWhatStandsBetween) {
  const NamePattern digits("{text}_{speaker}_{take}");
  const auto parts = digits.match("7_jackson_32");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->text, "7");
  EXPECT_EQ(parts->speaker, "jackson");
  const auto words = digits.match("good_morning_theo_1");
  ASSERT_TRUE(words);
  EXPECT_EQ(words->text, "good morning") << "the text alone may have the character between";
  EXPECT_EQ(words->speaker, "theo");
}

TEST(NamesOfSounds, TheWholeNameMayBeTheText) {
  EXPECT_EQ(NamePattern("{text}").match("0_0_1_0")->text, "0 0 1 0");
}

TEST(NamesOfSounds, TheTextMayStandBehind) {
  const auto parts = NamePattern("u-{id}-{speaker}={text}.clean").match("u-17-ann=yes_no.clean");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->id, "17");
  EXPECT_EQ(parts->speaker, "ann");
  EXPECT_EQ(parts->text, "yes no");
}

TEST(NamesOfSounds, NamesThatDoNotFitAreNone) {
  const NamePattern digits("{text}_{speaker}_{take}");
  for (const char* name : {"", "7", "7_jackson", "__", "7__1", "_ann_1", "7_ann_"}) {
    EXPECT_FALSE(digits.match(name)) << name;
  }
}

TEST(NamesOfSounds, BrokenPatternsAreRefused) {
  for (const char* pattern :
       {"", "abc", "{speaker}", "{text}{id}", "{text}_{text}", "{text", "{}", "text}", "{te{xt}"}) {
    failure(ExitCode::kUsage, [&] { NamePattern{pattern}; });
  }
}

TEST(LabelWords, ReplaceWholeWords) {
  const LabelWords words({"0 zero", "1 one more"});
  EXPECT_EQ(words.apply("0 1 10"), "zero one more 10");
  failure(ExitCode::kUsage, [] { LabelWords({"zero"}); });
  failure(ExitCode::kUsage, [] { LabelWords({"0 a", "0 b"}); });
}

}  // namespace
}  // namespace stretto::data
