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

TEST(TrainState, SurvivesJson) {
  const TrainState state{.step = 7,
                         .epoch = 2,
                         .batch_index = 5,
                         .validated_step = 6,
                         .bad_validations = 1,
                         .skipped_updates = 3,
                         .skipped_in_a_row = 2,
                         .good_step = 4,
                         .seconds = 0.1,
                         .quality = {{3, -1.25}, {6, -0.1}},
                         .loss_scales = {128, 64, 0.5},
                         .parts = {{"loss_scaler", {{"scale", 128}, {"good", 7}}}}};
  const auto read = TrainState::from_json(state.to_json(), "here");
  EXPECT_EQ(read.to_json(), state.to_json());
  EXPECT_EQ(read.good_step, 4);
  EXPECT_EQ(read.loss_scales, state.loss_scales);
  EXPECT_EQ(read.best_step(), 6);
}

TEST(TrainState, OfEqualValidationsTheEarlierIsTheBest) {
  TrainState state{.quality = {{4, -2}, {8, -1}, {12, -1}}};
  EXPECT_EQ(state.best_step(), 8);
  EXPECT_EQ(state.best_step(4), 8);
  state.quality[2] = -1;
  EXPECT_EQ(state.best_step(), 2);
}

TEST(TrainState, KeepsTheMarkOfTheMetricsAndKnowsAnEarlierVersionByItsSilence) {
  TrainState state{.step = 7, .skipped_updates = 2};
  state.metrics = {.bytes = 1234, .hash = 0xfedcba9876543210};
  auto read = TrainState::from_json(state.to_json(), "here");
  EXPECT_EQ(read.metrics->bytes, 1234U);
  EXPECT_EQ(read.metrics->hash, 0xfedcba9876543210);
  EXPECT_EQ(read.stepped(), 5);
  EXPECT_FALSE(read.counts_attempts);
  state.counts_attempts = true;
  state.metrics.reset();
  EXPECT_EQ(state.to_json().find("stepped_updates"), std::string::npos);
  read = TrainState::from_json(state.to_json(), "here");
  EXPECT_TRUE(read.counts_attempts);
  EXPECT_FALSE(read.metrics.has_value());
}

TEST(TrainState, TheBestMayBeLookedForAmongRegularValidationsOnly) {
  const TrainState state{.quality = {{4, -3}, {7, -1}, {8, -2}, {12, -2.5}}};
  EXPECT_EQ(state.best_step(), 7);
  EXPECT_EQ(state.best_step(4), 8);
  EXPECT_EQ(state.best_step(5), 0);
}

TEST(TrainState, ValidationsFromBeforeAPruningAreNeverTheBest) {
  TrainState state{.quality = {{4, -1}, {8, -3}, {12, -2}, {16, -2.5}}};
  EXPECT_EQ(state.to_json().find("best_from"), std::string::npos) << "of a run that prunes nothing";
  state.best_from = 5;
  EXPECT_EQ(state.best_step(), 12);
  EXPECT_EQ(state.best_step(8), 16);
  EXPECT_EQ(TrainState::from_json(state.to_json(), "here").best_from, 5);
  state.best_from = 17;
  EXPECT_EQ(state.best_step(), 0);
}

}  // namespace
}  // namespace stretto::runs
