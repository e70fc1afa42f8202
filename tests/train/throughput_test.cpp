#include "train/throughput.h"

#include <gtest/gtest.h>

namespace stretto::train {
namespace {

TEST(Throughput, TheWindowBeginsAnewAndTheMeanOfAllUpdatesGoesOn) {
  struct Row {
    bool begins;  // a window, before this update
    double seconds;
    int64_t count;
    double per_second, seconds_per_update;
  };
  Throughput throughput;
  for (const Row& row :
       {Row{false, 2, 100, 50, 2}, Row{false, 4, 500, 100, 3}, Row{true, 3, 900, 300, 3},
        Row{false, 3, 0, 150, 3}, Row{true, 0.5, 100, 200, 2.5}}) {
    if (row.begins) throughput.begin_window();
    throughput.add(row.seconds, row.count);
    EXPECT_DOUBLE_EQ(throughput.per_second(), row.per_second);
    EXPECT_DOUBLE_EQ(throughput.seconds_per_update(), row.seconds_per_update);
  }
}

TEST(Throughput, WithoutUpdatesNothingIsKnownAndNothingIsDividedByZero) {
  Throughput throughput;
  EXPECT_EQ(throughput.per_second(), 0);
  EXPECT_EQ(throughput.seconds_per_update(), -1);
  throughput.add(0, 7);
  EXPECT_DOUBLE_EQ(throughput.per_second(), 7e6) << "a clock that stood still";
  EXPECT_EQ(throughput.seconds_per_update(), 0);
}

}  // namespace
}  // namespace stretto::train
