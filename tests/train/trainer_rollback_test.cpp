// Where rollbacks lead, and what they keep.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <string>
#include <vector>

#include "tests/distributed/thread_group.h"
#include "tests/train/failing_runs.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::events, test::FailingTask;

class TrainerRollbackTest : public test::FailingRuns {};

TEST_F(TrainerRollbackTest, ARollbackKeepsTheScaleThatWasFoundMeanwhile) {
  auto run = setup("run");
  run.train.forensics = {.policy = "rollback", .stop_after = 1};
  run.train.loss_scale = {.name = "fairseq", .init = 256, .window = 1000};
  train(run, [](FailingTask& task) {
    task.largest_scale = [](int64_t step) { return step < 6 ? 1024 : 64; };
    task.nans[8] = 2;  // in training and when it is examined
  });
  // 256 until the checkpoint of step 4; then 6 and 7 overflow, and 8 sends the run back.
  const std::vector<double> scales{256, 256, 256, 256, 32, 32, 32, 32, 32, 32, 32, 32};
  const auto updates = events(run, "train");
  ASSERT_EQ(updates.size(), scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    EXPECT_EQ(updates[i].loss_scale.value(), scales[i]) << "step " << i + 1;
    EXPECT_FALSE(updates[i].skipped.value_or(false)) << "step " << i + 1;
    if (i >= 2) {
      EXPECT_DOUBLE_EQ(updates[i].lr.value(), i < 4 ? kPeak : kPeak / 2) << "step " << i + 1;
    }
  }
}

TEST_F(TrainerRollbackTest, WeightsThatGaveNoFiniteUpdateAreNotGoneBackTo) {
  for (const int64_t kept : {1, 5}) {
    auto run = setup("keep" + std::to_string(kept));
    // Update 6 ruins the weights, and they are saved; update 7 finds out.
    run.schedule = {
        .name = "piecewise", .warmup_steps = 0, .boundaries = {5}, .multipliers = {1e30}};
    run.train.forensics = {.policy = "rollback", .stop_after = 1, .rollback_lr_factor = 1e-30};
    run.train.save_every = 1;
    run.train.keep_last = kept;
    ::testing::internal::CaptureStderr();
    train(run, [](FailingTask&) {});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("back to the checkpoint of step 5"), std::string::npos) << log;
    EXPECT_NE(log.find("undone-step_00000006"), std::string::npos) << log;
    EXPECT_EQ(undone(run), (std::multiset<int64_t>{6}));
    const auto updates = events(run, "train");
    ASSERT_EQ(updates.size(), 12U);
    for (const auto& update : updates) {
      EXPECT_FALSE(update.skipped.value_or(false)) << update.step;
      const double factor = update.step <= 5 ? 1 : 1e30 * 1e-30;
      EXPECT_DOUBLE_EQ(update.lr.value(), kPeak * factor) << update.step;
    }
  }
}

TEST_F(TrainerRollbackTest, AnUpdateThatFailsAgainSendsTheRunFurtherBack) {
  auto run = setup("run");
  run.train.forensics = {.policy = "rollback", .stop_after = 1, .max_reports = 0};
  run.train.save_every = 2;
  run.train.keep_last = 100;
  FailingTask task;
  task.nans[10] = FailingTask::kAlways;
  ::testing::internal::CaptureStderr();
  const auto error = error_of(run, task);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("after 3 rollbacks (learning rate times 0.125)"),
            std::string::npos)
      << error->what();
  size_t from = 0;
  for (const char* back : {"to the checkpoint of step 8, learning rate times 0.5",
                           "to the checkpoint of step 6, learning rate times 0.25",
                           "to the checkpoint of step 4, learning rate times 0.125"}) {
    from = log.find(back, from);
    ASSERT_NE(from, std::string::npos) << back << " is missing in\n" << log;
  }
  // The step after each rollback is saved, so that a kill does not forget the rate.
  EXPECT_EQ(undone(run), (std::multiset<int64_t>{8, 9, 6, 7, 8}));
  EXPECT_EQ(checkpoints(run), (Steps{2, 4, 5, 6, 8}));
}

TEST_F(TrainerRollbackTest, ARunWithoutAGoodCheckpointStopsAndSaysSo) {
  auto run = setup("run");
  run.train.forensics = {.policy = "rollback", .stop_after = 1};
  FailingTask task;
  task.nans[5] = FailingTask::kAlways;  // right behind the first checkpoint
  const auto error = error_of(run, task);
  ASSERT_TRUE(error);
  const std::string what = error->what();
  EXPECT_NE(what.find("no checkpoint"), std::string::npos) << what;
  EXPECT_EQ(what.find("rollbacks"), std::string::npos) << what;
  EXPECT_EQ(checkpoints(run), Steps{4});
}

TEST_F(TrainerRollbackTest, AResumedRunKnowsWhichCheckpointWasGood) {
  auto run = setup("run");
  run.train.forensics = {.policy = "rollback", .stop_after = 1};
  run.train.keep_last = 100;
  // The second process begins at 8, which nothing finite has followed; 4 was followed by 5.
  train(run, [](FailingTask& task) { task.nans[9] = 2; }, {8});
  const auto updates = events(run, "train");
  ASSERT_EQ(updates.size(), 12U);
  for (size_t i = 2; i < 12; ++i) {
    EXPECT_DOUBLE_EQ(updates[i].lr.value(), i < 4 ? kPeak : kPeak / 2) << "step " << i + 1;
  }
  EXPECT_EQ(undone(run), (std::multiset<int64_t>{8}));
}

TEST_F(TrainerRollbackTest, AllRanksGoBackTogether) {
  auto run = setup("run");
  run.train.update_freq = 2;
  run.train.forensics = {.policy = "rollback", .stop_after = 1, .max_reports = 0};
  run.train.save_every = 2;
  run.train.keep_last = 100;
  run.dist.check_every = 1;
  run.handle_signals = false;
  const int threads_before = at::get_num_threads();
  at::set_num_threads(1);
  std::vector<FailingTask> tasks(2);
  tasks[1].nans[7] = 2;
  stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
    EXPECT_EQ(Trainer(tasks[static_cast<size_t>(group.rank())], run, group).run(), ExitCode::kOk);
  });
  at::set_num_threads(threads_before);
  const auto updates = events(run, "train");
  ASSERT_EQ(updates.size(), 12U);
  // Checkpoint 6 had no finite update behind it; from 4 update 7 fails once more, then from 2.
  const std::vector<double> share{0,    0.5,  0.25, 0.25, 0.25, 0.25,
                                  0.25, 0.25, 0.25, 0.25, 0.25, 0.25};
  for (size_t i = 0; i < share.size(); ++i) {
    EXPECT_DOUBLE_EQ(updates[i].lr.value(), kPeak * share[i]) << "step " << i + 1;
  }
}

}  // namespace
}  // namespace stretto::train
