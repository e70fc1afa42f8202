#include "report/chart_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stretto::report {
namespace {

using Values = std::vector<double>;

void expect_near(const Values& found, const Values& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::abs(expected[i]) + 1e-300);
  }
}

TEST(ChartMath, TicksAreRoundNumbersInsideTheRange) {
  expect_near(nice_ticks(0, 10, 6), {0, 2, 4, 6, 8, 10});
  expect_near(nice_ticks(1.93, 9.2, 6), {2, 4, 6, 8});
  expect_near(nice_ticks(0, 7.1e-4, 6), {0, 2e-4, 4e-4, 6e-4});
  expect_near(nice_ticks(-3, 3, 6), {-2, 0, 2});
}

TEST(ChartMath, TicksOfALogarithmicAxisAreOneTwoFive) {
  expect_near(nice_log_ticks(4, 120, 9), {5, 10, 20, 50, 100});
  expect_near(nice_log_ticks(4, 12000, 6), {10, 100, 1000, 10000});
  expect_near(nice_log_ticks(6.1, 8.3, 6), {6.5, 7, 7.5, 8});
}

TEST(ChartMath, TicksAreAlwaysFewAndInside) {
  for (double low = -1e4; low < 1e4; low += 777.7) {
    for (double size = 1e-6; size < 1e9; size *= 3.3) {
      const Values ticks = nice_ticks(low, low + size, 6);
      EXPECT_GE(ticks.size(), 1u);
      EXPECT_LE(ticks.size(), 9u);
      for (const double tick : ticks) {
        EXPECT_GE(tick, low - 1e-6 * size);
        EXPECT_LE(tick, low + size * (1 + 1e-6));
      }
    }
  }
  EXPECT_EQ(nice_ticks(1, 1, 6).size(), 1u);
  EXPECT_EQ(nice_ticks(-1e308, 1e308, 6).size(), 1u);
  EXPECT_EQ(nice_ticks(1, 1 + 1e-15, 6).size(), 1u);
}

TEST(ChartMath, AnAxisHasATickAtItsFoot) {
  expect_near(axis_ticks(0.13, 10.4, 6, false), {0, 2, 4, 6, 8, 10});
  expect_near(axis_ticks(1.93, 9.2, 6, false), {0, 2, 4, 6, 8});
  expect_near(axis_ticks(-3, 3, 6, false), {-4, -2, 0, 2});
  expect_near(axis_ticks(2, 10, 6, false), {2, 4, 6, 8, 10});  // it already has
  expect_near(axis_ticks(4, 120, 9, true), {2, 5, 10, 20, 50, 100});
  expect_near(axis_ticks(7, 120, 9, true), {5, 10, 20, 50, 100});
  expect_near(axis_ticks(15, 120, 9, true), {10, 20, 50, 100});
  expect_near(axis_ticks(4, 1.2e5, 6, true), {1, 10, 100, 1e3, 1e4, 1e5});
  expect_near(axis_ticks(6.1, 8.3, 6, true), {6, 6.5, 7, 7.5, 8});
  EXPECT_EQ(axis_ticks(1, 1, 6, false).size(), 1u);
}

TEST(ChartMath, TheLowestTickIsAtOrBelowTheData) {
  for (double low = 1e-3; low < 1e6; low *= 2.7) {
    for (double factor = 1.01; factor < 1e9; factor *= 2.9) {
      for (const bool logarithmic : {false, true}) {
        const double high = low * factor;
        const Values ticks = axis_ticks(low, high, 6, logarithmic);
        EXPECT_LE(ticks.front(), low + 1e-6 * (high - low)) << low << " to " << high;
        EXPECT_LE(ticks.size(), 10u);
        EXPECT_TRUE(!logarithmic || ticks.front() > 0);
        EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
      }
    }
  }
}

TEST(ChartMath, LabelsOfAnAxisHaveOneFormat) {
  using Labels = std::vector<std::string>;
  struct Case {
    Values ticks;
    Labels labels;
  };
  const Case cases[] = {
      {{0, 2, 4, 10}, {"0", "2", "4", "10"}},
      {{0, 0.5, 1, 1.5}, {"0", "0.5", "1.0", "1.5"}},
      // A learning rate: neither half decimal and half scientific, nor with varying decimals.
      {{0, 2e-4, 4e-4, 6e-4, 8e-4, 1e-3}, {"0", "0.0002", "0.0004", "0.0006", "0.0008", "0.0010"}},
      {{0, 5e-4, 1e-3, 1.5e-3}, {"0", "0.0005", "0.0010", "0.0015"}},
      {{0, 1e-5, 2e-5}, {"0", "0.00001", "0.00002"}},
      {{0, 5e-7, 1e-6, 1.5e-6}, {"0", "0.5e-6", "1.0e-6", "1.5e-6"}},
      {{0, 5000, 10000}, {"0", "5,000", "10,000"}},
      {{0, 50'000, 100'000}, {"0", "50k", "100k"}},
      {{0, 500'000, 1'000'000}, {"0", "0.5M", "1.0M"}},
      {{-1, 0, 1}, {"-1", "0", "1"}},
      {{-20'000, -15'000}, {"-20,000", "-15,000"}},
      {{1000, 1000.5, 1001}, {"1,000.0", "1,000.5", "1,001.0"}},
      {{10, 100, 1000, 10'000}, {"10", "100", "1,000", "10,000"}},
      {{10, 1000, 100'000, 1e7}, {"10", "1k", "100k", "10M"}},
      {{0.05, 0.1, 0.2, 0.5, 1}, {"0.05", "0.1", "0.2", "0.5", "1"}},
      {{1e-5, 1e-4, 1e-3, 1e-2}, {"1e-5", "1e-4", "1e-3", "1e-2"}},
      {{0.01, 1000}, {"0.01", "1,000"}},
      {{4096}, {"4,096"}},
      {{0}, {"0"}},
      {{}, {}},
  };
  for (const Case& c : cases) EXPECT_EQ(tick_labels(c.ticks), c.labels);
}

TEST(ChartMath, LabelsSurviveNumbersThatNoAxisCanHold) {
  for (const Values& ticks :
       {Values{-1e99, 1e99}, Values{1e-99, 2e-99}, Values{1e-300, 1e300}, Values{1, 1 + 1e-13},
        Values{1e15, 2e15, 3e15}, Values{1e6 + 0.25, 1e6 + 0.5}}) {
    const std::vector<std::string> labels = tick_labels(ticks);
    ASSERT_EQ(labels.size(), ticks.size());
    for (const std::string& label : labels) EXPECT_LE(label.size(), 24u) << label;
  }
}

TEST(ChartMath, LoneLabelsAreShort) {
  EXPECT_EQ(tick_label(0), "0");
  EXPECT_EQ(tick_label(0.5), "0.5");
  EXPECT_EQ(tick_label(7e-4), "7e-4");
  EXPECT_EQ(tick_label(0.002), "0.002");
  EXPECT_EQ(tick_label(4000), "4,000");
  EXPECT_EQ(tick_label(40000), "40k");
  EXPECT_EQ(tick_label(2.5e6), "2.5M");
  EXPECT_EQ(tick_label(1e99), "1e99");
}

TEST(ChartMath, ThinningOutKeepsEndsSpikesAndOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.01)});
  points[54'321].y = 50;
  points[12'345].y = -50;
  const auto few = downsample(points, 600);
  EXPECT_LE(few.size(), 600u);
  EXPECT_GT(few.size(), 500u);
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 99'999);
  const auto by_y = [](const Point& a, const Point& b) { return a.y < b.y; };
  EXPECT_EQ(std::max_element(few.begin(), few.end(), by_y)->x, 54'321);
  EXPECT_EQ(std::min_element(few.begin(), few.end(), by_y)->x, 12'345);
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const Point& a, const Point& b) { return a.x < b.x; }));
}

TEST(ChartMath, SmoothingKeepsAConstantAndForgetsALoneSpike) {
  std::vector<Point> points;
  for (int i = 0; i < 200; ++i) points.push_back({static_cast<double>(i), 3.0});
  points[100].y = 1000;
  for (const Point& point : smooth(points, 10)) EXPECT_NEAR(point.y, 3.0, 1e-12);
}

TEST(ChartMath, SmoothingDoesNotLagBehindASlope) {
  std::vector<Point> points;
  for (int i = 0; i < 400; ++i) points.push_back({static_cast<double>(i), 2.0 * i});
  EXPECT_NEAR(smooth(points, 10)[200].y, 400.0, 1e-6);
}

TEST(ChartMath, QuantilesAreOrderStatistics) {
  EXPECT_EQ(quantile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 3}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 3}, 1), 5);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace stretto::report
