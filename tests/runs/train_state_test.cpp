#include "runs/train_state.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stretto::runs {
namespace {

// Every number differs, so that none can be taken for another.
TrainState full_state() {
  return {.step = 101,
          .epoch = 3,
          .batch_index = 17,
          .validated_step = 96,
          .bad_validations = 2,
          .skipped_updates = 9,
          .skipped_in_a_row = 4,
          .good_step = 88,
          .seconds = 12.5,
          .quality = {{48, -2.5}, {96, -1.25}},
          .metrics = report::MetricsMark{.bytes = 1234, .hash = 0xfedcba9876543210},
          .counts_attempts = false,
          .loss_scales = {1024, 512},
          .parts = {{"spikes", {{"mean", 0.5}}}}};
}

TEST(TrainState, ComesBackWithEachOfItsNumbers) {
  const TrainState state = full_state();
  const auto again = TrainState::from_json(state.to_json(), "state.json");
  EXPECT_EQ(again.step, 101);
  EXPECT_EQ(again.epoch, 3);
  EXPECT_EQ(again.batch_index, 17);
  EXPECT_EQ(again.validated_step, 96);
  EXPECT_EQ(again.bad_validations, 2);
  EXPECT_EQ(again.skipped_updates, 9);
  EXPECT_EQ(again.skipped_in_a_row, 4);
  EXPECT_EQ(again.good_step, 88);
  EXPECT_EQ(again.seconds, 12.5);
  EXPECT_EQ(again.quality, state.quality);
  ASSERT_TRUE(again.metrics);
  EXPECT_EQ(again.metrics->bytes, 1234u);
  EXPECT_EQ(again.metrics->hash, 0xfedcba9876543210u);
  EXPECT_FALSE(again.counts_attempts);
  EXPECT_EQ(again.loss_scales, state.loss_scales);
  EXPECT_EQ(again.parts, state.parts);
  EXPECT_EQ(again.stepped(), 92);
  EXPECT_EQ(again.to_json(), state.to_json());
}

TEST(TrainState, OfAVersionThatCountedAttemptsStaysOne) {
  TrainState state = full_state();
  state.counts_attempts = true;
  EXPECT_TRUE(TrainState::from_json(state.to_json(), "state.json").counts_attempts);
}

TEST(TrainState, KnowsTheBestValidationAndThatOfRegularOnes) {
  TrainState state;
  EXPECT_EQ(state.best_step(), 0);
  state.quality = {{10, 1.0}, {15, 3.0}, {20, 2.0}, {30, 2.0}};
  EXPECT_EQ(state.best_step(), 15);
  EXPECT_EQ(state.best_step(10), 20) << "the earlier of two equal ones";
}

TEST(TrainState, ThatIsNoneIsNamed) {
  try {
    TrainState::from_json("{}", "here/state.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("here/state.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace stretto::runs
