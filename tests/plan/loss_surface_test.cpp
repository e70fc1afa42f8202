#include "plan/loss_surface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace stretto::plan {
namespace {

double loss_of(double parameters, double updates) {
  return 1.5 + 40 * std::pow(parameters, -0.28) + 12 * std::pow(updates, -0.5);
}

std::vector<LossPoint> losses_of_three_sizes() {
  std::vector<LossPoint> points;
  for (const double parameters : {1e6, 3e6, 1e7}) {
    for (double updates = 50; updates < 500; updates *= 1.2) {
      points.push_back({parameters, updates, loss_of(parameters, updates)});
    }
  }
  return points;
}

TEST(LossSurface, PredictsSizesAndUpdatesThatNobodyMeasured) {
  const LossSurface surface(losses_of_three_sizes());
  for (const double parameters : {2e6, 3e7}) {
    const auto loss = surface.at(parameters, 5000);
    EXPECT_NEAR(loss.value, loss_of(parameters, 5000), 0.05 * loss.value) << parameters;
    EXPECT_LT(std::abs(loss.value - loss_of(parameters, 5000)), 3 * loss.error) << parameters;
  }
}

TEST(LossSurface, SaysThatLaterIsLessCertain) {
  const LossSurface surface(losses_of_three_sizes());
  EXPECT_LT(surface.at(3e6, 400).error, surface.at(3e6, 400'000).error);
}

TEST(LossSurface, LargerModelsTrainLongerUntilTheyAreInBalance) {
  const LossSurface surface(losses_of_three_sizes());
  const double small = surface.balanced_updates(1e6), large = surface.balanced_updates(1e8);
  EXPECT_GT(small, 0);
  EXPECT_GT(large, small);
  // b B S^-b = a A N^-a
  const double truth = std::pow(0.5 * 12 / (0.28 * 40 * std::pow(1e6, -0.28)), 2);
  EXPECT_NEAR(std::log(small), std::log(truth), std::log(6));
}

TEST(LossSurface, RefusesFewLossesAndNumbersThatAreNone) {
  EXPECT_THROW(LossSurface(std::vector<LossPoint>{{1e6, 10, 3}}), std::invalid_argument);
  EXPECT_THROW(LossSurface(std::vector<LossPoint>{{1, 1, 3}, {1, 2, 2}, {1, 3, 2}, {1, 4, 0}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace stretto::plan
