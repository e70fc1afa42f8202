#include "base/told_error.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(LastToldError, IsTheLastOfThoseThatBeginALine) {
  EXPECT_EQ(last_told_error("step 1\nerror: one\n  advice\nan error: no\nerror: two\n  more\n"),
            "two");
  EXPECT_EQ(last_told_error("error: cut"), "cut");
  EXPECT_EQ(last_told_error("warning: error: none\n"), "");
  EXPECT_EQ(last_told_error(""), "");
}

}  // namespace
}  // namespace stretto
