#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "tests/train/toy_task.h"
#include "tests/train/trainer_runs.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::events, test::ToyTask, test::TrainerTest;

TEST_F(TrainerTest, AnUpdateNeverCrossesAnEpoch) {
  auto run = setup("run");
  run.train.update_freq = 3;  // 8 micro-batches: 3 + 3 + 2
  run.train.max_steps = 0;
  run.train.max_epochs = 2;
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = events(run, "train");
  ASSERT_EQ(train.size(), 6U);
  const std::vector<double> tokens{6, 6, 4, 6, 6, 4};
  const std::vector<int64_t> epochs{1, 1, 1, 2, 2, 2};
  for (size_t i = 0; i < train.size(); ++i) {
    EXPECT_EQ(train[i].number("target_tokens"), tokens[i]);
    EXPECT_EQ(train[i].epoch, epochs[i]);
  }
}

/// Sixteen micro-batches an epoch, where ToyTask has eight.
class LongerTask : public ToyTask {
 public:
  const data::BatchSource& train_batches() override { return source_; }

 private:
  struct Source : data::BatchSource {
    int64_t num_batches() const override { return 16; }
    data::Batch load(int64_t, int64_t index) const override { return test::toy_batch(index % 8); }
  };
  Source source_;
};

/// Two epochs of ToyTask in updates of three micro-batches: 3 + 3 updates, of which
/// ceil(6 * 0.3) = 2 are warm-up.
TrainerSetup two_epochs(TrainerSetup run) {
  run.train.update_freq = 3;
  run.train.max_steps = 0;
  run.train.max_epochs = 2;
  run.schedule = {
      .name = "linear", .warmup_steps = 0, .warmup_ratio = 0.3, .warmup_init_lr = 0, .min_lr = 0};
  return run;
}

void expect_rates(const TrainerSetup& run, const std::vector<double>& rates) {
  const auto train = events(run, "train");
  ASSERT_EQ(train.size(), rates.size());
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(train[i].lr.value(), rates[i], 1e-12) << "step " << i + 1;
  }
}

TEST_F(TrainerTest, NoamDividesByTheRootOfTheWidthThatTheTrainerIsGiven) {
  auto run = setup("run");
  run.optim.lr = 2;
  run.schedule = {.name = "noam", .warmup_steps = 4};
  run.train.max_steps = 6;
  run.model_width = 64;
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  // 2 / 8 times t / 4^1.5 up to the fourth update, and then times 1 / sqrt(t)
  expect_rates(run, {0.25 * 1 / 8, 0.25 * 2 / 8, 0.25 * 3 / 8, 0.25 / 2, 0.25 / std::sqrt(5.0),
                     0.25 / std::sqrt(6.0)});
}

TEST_F(TrainerTest, AScheduleEndsWithTheLastEpoch) {
  const auto run = two_epochs(setup("run"));  // peak 0.05
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  expect_rates(run, {0, 0.025, 0.05, 0.0375, 0.025, 0.0125});
}

// The epoch has one update less, the schedule does not.
TEST_F(TrainerTest, ASkippedUpdateLeavesAScheduleOfEpochsOneUpdateBeforeItsEnd) {
  const auto run = two_epochs(setup("run"));
  ToyTask task;
  task.nan_at = 1;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  expect_rates(run, {0, 0.025, 0.025, 0.05, 0.0375, 0.025});
}

TEST_F(TrainerTest, AResumeGoesOnAlongTheCurveOfTheFirstStart) {
  const auto run = two_epochs(setup("run"));
  ToyTask task;
  task.signal_at = 2;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kInterrupted);
  LongerTask grown;
  ASSERT_EQ(Trainer(grown, run).run(), ExitCode::kOk);
  // Made for 6 updates as at first, although one epoch has so many now.
  expect_rates(run, {0, 0.025, 0.05, 0.0375, 0.025, 0.0125, 0, 0, 0, 0, 0, 0});
  // With other epochs (--extend) they are counted anew: 3 of 6 updates, ceil(5.4) of warm-up.
  auto longer = run;
  longer.train.max_epochs = 3;
  ASSERT_EQ(Trainer(grown, longer).run(), ExitCode::kOk);
  const auto train = events(longer, "train");
  ASSERT_EQ(train.size(), 18U);
  for (size_t i = 12; i < train.size(); ++i) {
    EXPECT_NEAR(train[i].lr.value(), 0.05 * static_cast<double>(18 - i) / 12, 1e-12);
  }
}

TEST_F(TrainerTest, PlateauShrinksTheRateWhenValidationBringsNothing) {
  auto run = setup("run");
  run.train.max_steps = 14;
  run.eval.every = 2;
  run.schedule = {.name = "plateau", .warmup_steps = 0, .decay_rate = 0.5};
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  // Validations after steps 2, 4, …: 3.0, 2.0, 2.5 (one reduction), 1.0, 1.5, 1.6 (two more).
  const auto train = events(run, "train");
  const std::vector<double> factor{1, 1, 1, 1, 1, 1, .5, .5, .5, .5, .25, .25, .125, .125};
  for (size_t i = 0; i < factor.size(); ++i) {
    EXPECT_DOUBLE_EQ(train[i].lr.value(), 0.05 * factor[i]) << "step " << i + 1;
  }
}

}  // namespace
}  // namespace stretto::train
