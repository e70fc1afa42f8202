#include "report/power_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stretto::report {
namespace {

std::vector<Point> points_of_law(const PowerLaw& law) {
  std::vector<Point> points;
  for (int i = 1; i <= 12; ++i) points.push_back({100.0 * i, law.at(100.0 * i)});
  return points;
}

TEST(PowerLaw, IsFoundAgainFromItsPoints) {
  const PowerLaw truth{.floor = 2, .scale = 30, .exponent = 0.5};
  const auto found = fit_power_law(points_of_law(truth));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->exponent, 0.5, 0.02);
  EXPECT_NEAR(found->floor, 2, 0.05);
  EXPECT_NEAR(found->at(2400), truth.at(2400), 0.01);
  EXPECT_NEAR(found->excess(1200), 30 / std::sqrt(1200), 0.05);
}

TEST(PowerLaw, HasNoFloorBelowZero) {
  std::vector<Point> points;
  for (int i = 1; i <= 8; ++i) points.push_back({double(i), 8.0 - i});  // a straight line to 0
  const auto found = fit_power_law(points);
  ASSERT_TRUE(found);
  EXPECT_GE(found->floor, 0);
  EXPECT_GT(found->scale, 0);
}

TEST(PowerLaw, OfValuesThatRiseIsTheirMean) {
  const auto found = fit_power_law(std::vector<Point>{{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->scale, 0);
  EXPECT_DOUBLE_EQ(found->floor, 2.5);
}

TEST(PowerLaw, NeedsFourPointsThatDifferAndAreNumbers) {
  EXPECT_FALSE(fit_power_law(std::vector<Point>{{1, 3}, {2, 2}, {3, 1}}));
  EXPECT_FALSE(fit_power_law(std::vector<Point>{{2, 3}, {2, 2}, {2, 1}, {2, 1}}));
  EXPECT_FALSE(fit_power_law(std::vector<Point>{{0, 3}, {1, 2}, {2, 1}, {3, 1}}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(fit_power_law(std::vector<Point>{{1, nan}, {2, 2}, {3, 1}, {4, 1}}));
}

}  // namespace
}  // namespace stretto::report
