#include "train/compute_optimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "train/stop_conditions.h"

namespace stretto::train {
namespace {

constexpr int64_t kEvery = 100;
constexpr double kExponent = 0.076;

// 2 + 10 S^-0.5: with this model a factor of updates brings 5 S^-0.5, and with a larger one 0.152.
std::map<int64_t, double> falling(int64_t steps) {
  std::map<int64_t, double> quality;
  for (int64_t step = kEvery; step <= steps; step += kEvery) {
    quality[step] = -(2 + 10 / std::sqrt(double(step)));
  }
  return quality;
}

TEST(ComputeOptimal, EndsWhereALargerModelWouldGainMore) {
  // 5 S^-0.5 = 0.152 at S = 1082
  EXPECT_FALSE(compute_optimal_reason(falling(900), kEvery, kExponent));
  const auto reason = compute_optimal_reason(falling(1500), kEvery, kExponent);
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("train.stop"), std::string::npos);
}

TEST(ComputeOptimal, AGreaterExponentEndsARunSooner) {
  EXPECT_TRUE(compute_optimal_reason(falling(900), kEvery, 0.3));
  EXPECT_FALSE(compute_optimal_reason(falling(3000), kEvery, 0.01));
}

TEST(ComputeOptimal, WaitsForEightValidations) {
  EXPECT_FALSE(compute_optimal_reason(falling(700), kEvery, 10));
  EXPECT_FALSE(compute_optimal_reason({}, kEvery, 10));
}

TEST(ComputeOptimal, AProcessThatLeftBetweenValidationsChangesNothing) {
  auto quality = falling(900);
  quality[850] = -1;  // the validation of its end
  EXPECT_EQ(compute_optimal_reason(quality, kEvery, kExponent),
            compute_optimal_reason(falling(900), kEvery, kExponent));
}

TEST(ComputeOptimal, IsAskedBehindAValidationOfARunThatWantsIt) {
  runs::TrainState state;
  state.step = state.validated_step = 1500;
  state.quality = falling(1500);
  EXPECT_FALSE(StopConditions({}, 0, 8, kEvery).reason(state, false));
  const StopConditions stops({.stop = "compute_optimal"}, 0, 8, kEvery);
  EXPECT_TRUE(stops.reason(state, false));
  state.step = 1501;
  EXPECT_FALSE(stops.reason(state, false)) << "it has gone on";
}

}  // namespace
}  // namespace stretto::train
