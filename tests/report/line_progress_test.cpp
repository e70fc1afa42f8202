#include "report/line_progress.h"

#include <gtest/gtest.h>

namespace stretto::report {
namespace {

TEST(LineProgressText, SaysHowFarItIsAndWhenItEnds) {
  EXPECT_EQ(format_line_progress({.lines = 1024, .total = 20000, .seconds = 8.5}, 100),
            "1,024 of 20,000 lines 5% · 120 lines/s · ETA 2m 38s");
  EXPECT_EQ(format_line_progress({.lines = 3, .total = 3, .seconds = 2}, 100),
            "3 of 3 lines 100% · 1.5 lines/s");
}

TEST(LineProgressText, SaysNothingThatIsNotKnown) {
  EXPECT_EQ(format_line_progress({.lines = 0, .total = 7, .seconds = 1}, 100), "0 of 7 lines 0%");
  EXPECT_EQ(format_line_progress({.lines = 1, .seconds = 0.5}, 100), "1 line · 2.0 lines/s");
  EXPECT_EQ(format_line_progress({.lines = 0, .total = 0}, 100), "0 lines");
}

TEST(LineProgressText, IsNeverWiderThanTheScreen) {
  const LineState state{.lines = 1024, .total = 20000, .seconds = 8.5};
  EXPECT_EQ(format_line_progress(state, 40), "1,024 of 20,000 lines 5% · ETA 2m 38s");
  EXPECT_EQ(format_line_progress(state, 30), "1,024 of 20,000 lines 5%");
  EXPECT_EQ(format_line_progress(state, 10), "1,024 of …");
  EXPECT_EQ(format_line_progress(state, 0), "");
}

}  // namespace
}  // namespace stretto::report
