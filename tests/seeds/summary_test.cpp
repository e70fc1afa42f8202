#include "seeds/summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stretto::seeds {
namespace {

RunScores run_with(double best, double last, double seconds) {
  return {.best = ValidationScores{.step = 1, .scores = {{"nll", best}}},
          .last = ValidationScores{.step = 2, .scores = {{"nll", last}, {"accuracy", best}}},
          .seconds = seconds};
}

TEST(SeedsSummary, HasMeanAndSampleDeviation) {
  const auto spread = spread_of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(spread->mean, 5);
  EXPECT_DOUBLE_EQ(*spread->deviation, std::sqrt(32.0 / 7)) << "divided by n - 1";
  EXPECT_EQ(spread->runs, 8);
  EXPECT_EQ(spread_of({3})->deviation, std::nullopt);
  EXPECT_FALSE(spread_of({}));
}

TEST(SeedsSummary, CountsTheRunsThatHaveAScore) {
  auto without = run_with(3, 4, 10);
  without.last->scores.pop_back();
  without.best.reset();
  const auto summary = summarise({run_with(1, 2, 20), without});
  ASSERT_EQ(summary.best.size(), 1u);
  EXPECT_EQ(summary.best[0].second.runs, 1);
  ASSERT_EQ(summary.last.size(), 2u);
  EXPECT_EQ(summary.last[0].first, "nll");
  EXPECT_DOUBLE_EQ(summary.last[0].second.mean, 3);
  EXPECT_EQ(summary.last[1].second.runs, 1);
  EXPECT_DOUBLE_EQ(summary.seconds->mean, 15);
}

TEST(SeedsSummary, IsATable) {
  report::Display display;
  display.numbers = {{.name = "nll", .label = "NLL", .decimals = 2}};
  const auto lines = summary_lines(summarise({run_with(1, 2, 20), run_with(2, 4, 30)}), display);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "          best: mean  deviation  last: mean  deviation");
  EXPECT_EQ(lines[1], "NLL             1.50       0.71        3.00       1.41");
  EXPECT_EQ(lines[2], "accuracy           -          -      1.5000     0.7071");
  EXPECT_EQ(lines[3], "time: mean 25.0s, deviation 7.1s");
  EXPECT_TRUE(summary_lines({}, display).empty());
}

}  // namespace
}  // namespace stretto::seeds
