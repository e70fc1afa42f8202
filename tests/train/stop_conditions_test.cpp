#include "train/stop_conditions.h"

#include <gtest/gtest.h>

namespace stretto::train {
namespace {

constexpr int64_t kBatches = 8;  // of an epoch

runs::TrainState at(int64_t step, int64_t skipped = 0) {
  runs::TrainState state;
  state.step = step;
  state.skipped_updates = skipped;
  return state;
}

TEST(StopConditions, StepsThatWereSkippedDoNotCountTowardsMaxSteps) {
  const StopConditions stops({.max_steps = 10}, 0, kBatches);
  EXPECT_FALSE(stops.reason(at(11, 2), false));
  EXPECT_EQ(stops.reason(at(12, 2), false), "train.max_steps reached");
  EXPECT_EQ(stops.last_step(at(11, 2)), 12);
}

TEST(StopConditions, ACheckpointOfAnEarlierVersionCountsSkippedSteps) {
  const StopConditions stops({.max_steps = 10}, 0, kBatches);
  auto state = at(10, 2);
  state.counts_attempts = true;
  EXPECT_TRUE(stops.reason(state, false));
}

TEST(StopConditions, EpochsEndARunBehindTheirLastBatch) {
  const StopConditions stops({.max_epochs = 2}, 0, kBatches);
  auto state = at(15);
  state.epoch = 1;
  EXPECT_FALSE(stops.reason(state, false));
  state.epoch = 2;
  EXPECT_EQ(stops.reason(state, false), "train.max_epochs reached");
}

TEST(StopConditions, HoursAreThoseOfTheWholeRunAndEndItWhenAllRanksSaySo) {
  const StopConditions stops({.max_hours = 0.5}, 0, kBatches);
  auto state = at(3);
  state.seconds = 1799;
  EXPECT_FALSE(stops.time_is_up(state));
  state.seconds = 1800;
  EXPECT_TRUE(stops.time_is_up(state));
  EXPECT_FALSE(stops.reason(state, false));
  EXPECT_EQ(stops.reason(state, true), "train.max_hours reached");
}

TEST(StopConditions, PatienceEndsARunAfterSoManyBadValidations) {
  const StopConditions stops({.patience = 3}, 0, kBatches);
  auto state = at(30);
  state.bad_validations = 2;
  EXPECT_FALSE(stops.reason(state, false));
  state.bad_validations = 3;
  EXPECT_EQ(stops.reason(state, false), "no better validation in 3 (train.patience)");
}

TEST(StopConditions, UntilEndsTheProcessAndNotTheRun) {
  const StopConditions stops({.max_steps = 10}, 4, kBatches);
  EXPECT_FALSE(stops.is_far_enough(at(4, 1)));
  EXPECT_TRUE(stops.is_far_enough(at(5, 1)));
  EXPECT_FALSE(stops.reason(at(5, 1), false));
  EXPECT_EQ(stops.last_step(at(5, 1)), 5);
  EXPECT_FALSE(StopConditions({}, 0, kBatches).is_far_enough(at(100)));
}

TEST(StopConditions, TheTimeLeftIsThatOfTheFirstConditionToHold) {
  auto state = at(4);
  state.batch_index = 4;
  state.seconds = 3595;
  constexpr double kSecond = 1;  // an update
  const auto left = [&](const TrainOptions& train) {
    return StopConditions(train, 0, kBatches).seconds_left(state, kSecond);
  };
  EXPECT_EQ(left({}), -1);
  EXPECT_EQ(left({.max_steps = 10}), 6);
  EXPECT_EQ(left({.max_epochs = 2}), 12);
  EXPECT_EQ(left({.max_epochs = 2, .update_freq = 3}), 4);
  EXPECT_EQ(left({.max_steps = 10, .max_hours = 1}), 5);
  EXPECT_EQ(left({.max_steps = 3}), 0);
  EXPECT_EQ(StopConditions({.max_steps = 10}, 0, kBatches).seconds_left(state, -1), -1)
      << "before the first update";
}

}  // namespace
}  // namespace stretto::train
