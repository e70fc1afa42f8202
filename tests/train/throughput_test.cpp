#include "train/throughput.h"

#include <gtest/gtest.h>

namespace stretto::train {
namespace {

TEST(Pace, TheWindowBeginsAnewAndTheMeanOfAllUpdatesGoesOn) {
  struct Row {
    bool begins;  // a window, before this update
    double seconds;
    int64_t tokens;
    double tokens_per_second, seconds_per_update;
  };
  Pace pace;
  for (const Row& row :
       {Row{false, 2, 100, 50, 2}, Row{false, 4, 500, 100, 3}, Row{true, 3, 900, 300, 3},
        Row{false, 3, 0, 150, 3}, Row{true, 0.5, 100, 200, 2.5}}) {
    if (row.begins) pace.begin_window();
    pace.add(row.seconds, row.tokens);
    EXPECT_DOUBLE_EQ(pace.tokens_per_second(), row.tokens_per_second);
    EXPECT_DOUBLE_EQ(pace.seconds_per_update(), row.seconds_per_update);
  }
}

TEST(Pace, WithoutUpdatesNothingIsKnownAndNothingIsDividedByZero) {
  Pace pace;
  EXPECT_EQ(pace.tokens_per_second(), 0);
  EXPECT_EQ(pace.seconds_per_update(), -1);
  pace.add(0, 7);
  EXPECT_DOUBLE_EQ(pace.tokens_per_second(), 7e6) << "a clock that stood still";
  EXPECT_EQ(pace.seconds_per_update(), 0);
}

}  // namespace
}  // namespace stretto::train
