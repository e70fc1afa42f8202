#include "text/pronunciations.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::text {
namespace {

using stretto::testing::failure;

TEST(Pronunciations, TheFirstOfSeveralCounts) {
  const Pronunciations words(
      ";;; CMUdict\nHELLO  HH AH0 L OW1\nHELLO(1)  HH EH0 L OW1\n\nA\tAH0\r\n(PAREN)  P\n", "d");
  EXPECT_EQ(words.size(), 3U);
  EXPECT_EQ(words.of("hello"), "HH AH0 L OW1");
  EXPECT_EQ(words.of("Hello"), "HH AH0 L OW1");
  EXPECT_EQ(words.of("a"), "AH0");
  EXPECT_EQ(words.of("(paren)"), "P");
  EXPECT_EQ(words.of("world"), "");
}

TEST(Pronunciations, BrokenFilesAreRefused) {
  EXPECT_STREQ(failure(ExitCode::kBadData, [] { Pronunciations("A AH0\nHELLO\n", "d"); }).what(),
               "d:2: a word without phonemes: `HELLO`");
  failure(ExitCode::kBadData, [] { Pronunciations("", "d"); });
  failure(ExitCode::kBadData, [] { Pronunciations("A \xFF\n", "d"); });
}

}  // namespace
}  // namespace stretto::text
