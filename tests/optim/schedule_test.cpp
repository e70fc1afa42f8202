#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stretto::optim {
namespace {

struct Row {
  int64_t step;
  double lr;
};

void expect_table(const ScheduleOptions& schedule, double peak, int64_t total,
                  const std::vector<Row>& table) {
  for (const auto& row : table) {
    EXPECT_NEAR(learning_rate(schedule, peak, total, row.step), row.lr, 1e-12)
        << schedule.name << " at step " << row.step;
  }
}

TEST(Schedule, InverseSquareRootRisesFromTheInitialRateAndThenFallsWithTheRootOfTheStep) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 4000, .warmup_init_lr = 1e-7}, 5e-4, 0,
               {{0, 1e-7},
                {1, 1e-7 + (5e-4 - 1e-7) / 4000},
                {2000, 1e-7 + (5e-4 - 1e-7) / 2},
                {4000, 5e-4},
                {16000, 2.5e-4},
                {64000, 1.25e-4}});
}

TEST(Schedule, InverseSquareRootWithoutWarmUpStartsAtThePeak) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 0}, 1.0, 0,
               {{0, 1.0}, {1, 1.0}, {4, 0.5}, {100, 0.1}});
}

TEST(Schedule, LinearEndsAtItsFloorAndStaysThere) {
  expect_table({.name = "linear", .warmup_steps = 10, .warmup_init_lr = 0, .min_lr = 0.1}, 1.1, 110,
               {{0, 0.0}, {5, 0.55}, {10, 1.1}, {60, 0.6}, {110, 0.1}, {500, 0.1}});
}

TEST(Schedule, CosineIsHalfWayInTheMiddle) {
  expect_table({.name = "cosine", .warmup_steps = 0, .min_lr = 0}, 2.0, 100,
               {{0, 2.0}, {25, 1 + std::sqrt(0.5)}, {50, 1.0}, {100, 0.0}, {200, 0.0}});
}

TEST(Schedule, PolynomialFollowsItsPower) {
  expect_table({.name = "polynomial", .warmup_steps = 0, .min_lr = 0, .power = 2.0}, 1.0, 10,
               {{0, 1.0}, {5, 0.25}, {9, 0.01}, {10, 0.0}});
}

TEST(Schedule, ConstantStaysAtThePeakAfterWarmUp) {
  expect_table({.name = "constant", .warmup_steps = 4, .warmup_init_lr = 0}, 0.8, 0,
               {{0, 0.0}, {1, 0.2}, {3, 0.6}, {4, 0.8}, {100000, 0.8}});
}

TEST(Schedule, AFloorHoldsForInverseSquareRootToo) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 1, .warmup_init_lr = 0, .min_lr = 0.3}, 1.0,
               0, {{1, 1.0}, {4, 0.5}, {100, 0.3}});
}

}  // namespace
}  // namespace stretto::optim
