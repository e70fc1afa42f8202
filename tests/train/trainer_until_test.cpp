#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "tests/base/temp_dir.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::events, test::final_hash, test::ToyTask;

// The schedule ends with train.max_steps: who took `until` for the end would bend it.
TrainerSetup linear(const stretto::testing::TempDir& folder, const std::string& name) {
  auto run = test::toy_setup(folder / name);
  run.schedule.name = "linear";
  run.schedule.warmup_steps = 2;
  run.eval.every = 100;
  return run;
}

TEST(TrainerUntil, ARunThatPausesEndsWithTheSameWeightsAndUpdates) {
  const stretto::testing::TempDir folder;
  const auto whole = linear(folder, "whole");
  ToyTask undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);

  auto parts = linear(folder, "parts");
  for (const int64_t until : {1, 5, 5, 3, 7}) {
    parts.until = until;
    ToyTask task;
    ASSERT_EQ(Trainer(task, parts).run(), ExitCode::kOk);
    EXPECT_TRUE(events(parts, "end").empty()) << until;
    const int64_t reached = until == 3 ? 5 : until;
    ASSERT_FALSE(events(parts, "valid").empty());
    EXPECT_EQ(events(parts, "valid").back().step, reached);
    EXPECT_EQ(events(parts, "train").back().step, reached);
  }
  EXPECT_EQ(events(parts, "valid").size(), 3U) << "of 1, 5 and 7, each once";
  parts.until = 0;
  ToyTask task;
  ASSERT_EQ(Trainer(task, parts).run(), ExitCode::kOk);
  EXPECT_EQ(final_hash(parts), final_hash(whole));
  const auto expected = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].lr, expected[i].lr) << i;
    EXPECT_EQ(got[i].loss, expected[i].loss) << i;
  }
}

// Every validation is one without progress: whoever counted those of a pause would reduce the rate
// too early, and stop too early.
TEST(TrainerUntil, ValidationsOfPausesMoveNeitherPlateauNorPatience) {
  const stretto::testing::TempDir folder;
  const auto plateau = [&](const std::string& name) {
    auto run = test::toy_setup(folder / name);
    run.train.max_steps = 40;
    run.train.patience = 4;
    run.schedule.name = "plateau";
    run.schedule.decay_rate = 0.5;
    run.eval.every = 4;
    return run;
  };
  const auto train = [](const TrainerSetup& run) {
    ToyTask task;
    task.nlls = {1.0};
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  };
  const auto whole = plateau("whole");
  train(whole);
  auto parts = plateau("parts");
  for (const int64_t until : {1, 2, 4, 5, 6, 7, 9, 10, 13, 15}) {
    parts.until = until;
    train(parts);
  }
  parts.until = 0;
  train(parts);
  EXPECT_EQ(final_hash(parts), final_hash(whole));
  const auto expected = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].lr, expected[i].lr) << i;
  EXPECT_LT(expected.back().lr, expected[3].lr) << "the test is stale: nothing was reduced";
  EXPECT_EQ(events(whole, "end").back().step, 20) << "four without progress behind the first";
}

TEST(TrainerUntil, CountsUpdatesAsMaxStepsDoes) {
  const stretto::testing::TempDir folder;
  auto run = linear(folder, "run");
  run.until = 5;
  ToyTask task;
  task.nan_at = 3;  // one step that is no update
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(events(run, "train").back().step, 6);
}

TEST(TrainerUntil, BeyondTheEndIsTheEnd) {
  const stretto::testing::TempDir folder;
  auto run = linear(folder, "run");
  run.until = 1000;
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(events(run, "end").size(), 1U);
}

}  // namespace
}  // namespace stretto::train
