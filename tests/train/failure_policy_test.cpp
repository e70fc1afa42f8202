#include "train/failure_policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

using stretto::testing::failure;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The policy of a toy task, of which updates are played or real.
class FailurePolicyTest : public ::testing::Test {
 protected:
  FailurePolicy policy() {
    return {task_,
            arena_,
            updater_,
            {},
            {.options = options_,
             .forensics = {.run_directory = root_.path(), .identity = run_.identity},
             .activity = [this](const std::string& what) { activities_.push_back(what); }}};
  }

  /// An update whose loss was not finite.
  static TrainStep failed_step() {
    TrainStep step;
    step.update.totals = {.losses = {kNaN}, .weights = {2}};
    step.update.finite = false;
    step.skipped = true;
    return step;
  }

  /// The first update, which was made and failed.
  TrainStep failed_update() {
    task_.nan_at = 0;
    TrainStep step;
    step.update = updater_.gradients(0, [] { return 0; });
    EXPECT_FALSE(step.update.finite);
    state_.step = 1;
    return step;
  }

  runs::Checkpointer checkpointer() const {
    return {root_.path(), run_.identity, {.keep_last = 10}, {.in_background = false}};
  }
  /// As the training loop has it.
  bool restore(FailurePolicy& policy, runs::Checkpointer& checkpointer) {
    const auto restored = checkpointer.restore(arena_, updater_.empty_state());
    if (!restored) return false;
    state_ = *restored;
    policy.restore(state_);
    return true;
  }

  stretto::testing::TempDir root_;
  TrainerSetup run_ = test::toy_setup(root_ / "run");
  test::ToyTask task_;
  optim::Arena arena_{task_.model()};
  Updater updater_{task_, arena_, {}, {.train = run_.train, .optim = run_.optim}};
  ForensicsOptions options_{.policy = "stop", .stop_after = 2, .max_reports = 0};
  runs::TrainState state_;
  std::vector<std::string> activities_;
};

TEST_F(FailurePolicyTest, FailuresInARowEndTheRunAndAFiniteUpdateBetweenThemDoesNot) {
  FailurePolicy tried = policy();
  state_.step = 7;
  EXPECT_FALSE(tried.failed(failed_step(), state_).rolls_back);
  tried.finite(1, 1);
  EXPECT_FALSE(tried.failed(failed_step(), state_).rolls_back);
  const auto error = failure(ExitCode::kNumeric, [&] { tried.failed(failed_step(), state_); });
  EXPECT_NE(std::string(error.what()).find("step 7: the loss or a gradient was not finite in 2"),
            std::string::npos)
      << error.what();
}

TEST_F(FailurePolicyTest, AFailedUpdateIsExaminedAndItsReportIsNamed) {
  options_.max_reports = 1;
  FailurePolicy tried = policy();
  const auto verdict = tried.failed(failed_update(), state_);
  EXPECT_TRUE(std::filesystem::exists(verdict.report)) << verdict.report;
  EXPECT_EQ(activities_, (std::vector<std::string>{"looking for what is not finite", ""}));
}

TEST_F(FailurePolicyTest, ALossScalerThatCannotGoOnEndsTheRunAtOnce) {
  FailurePolicy tried = policy();
  TrainStep step = failed_update();
  step.scaler_error = Error(ExitCode::kNumeric, "the loss scale fell to its least value", "raise");
  const auto error = failure(ExitCode::kNumeric, [&] { tried.failed(step, state_); });
  EXPECT_STREQ(error.what(), "the loss scale fell to its least value");
  EXPECT_EQ(activities_.size(), 2U) << "it is examined under every max_reports";
}

TEST_F(FailurePolicyTest, ASpikeIsToldAndItsUpdateLeftOutWhereAsked) {
  options_.spike_policy = "skip";
  FailurePolicy tried = policy();
  for (int i = 0; i < 30; ++i) EXPECT_EQ(tried.finite(2, 1).text, "");
  const auto spike = tried.finite(2e6, 1);
  EXPECT_TRUE(spike.skip);
  EXPECT_NE(spike.text.find("loss"), std::string::npos) << spike.text;
}

TEST_F(FailurePolicyTest, AResumedRunKnowsItsFailuresAndWhatIsUsual) {
  FailurePolicy before = policy(), after = policy();
  for (int i = 0; i < 30; ++i) before.finite(2, 1);
  before.failed(failed_step(), state_);
  before.note_scale(128);
  before.save(state_);
  EXPECT_EQ(state_.loss_scales, std::vector<double>{128});
  after.restore(state_);
  EXPECT_THROW(after.failed(failed_step(), state_), Error) << "the second in a row";
  EXPECT_TRUE(after.finite(2e6, 1).loss);
}

TEST_F(FailurePolicyTest, ARollbackGoesToTheCheckpointThatFiniteUpdatesFollowed) {
  options_.policy = "rollback";
  FailurePolicy tried = policy();
  auto saved = checkpointer();
  for (const int64_t step : {4, 6}) {
    state_.step = step;
    tried.save(state_);
    saved.save(arena_, updater_.gather_state(), state_);
  }
  state_.step = 8;
  state_.good_step = 4;
  EXPECT_FALSE(tried.failed(failed_step(), state_).rolls_back);
  EXPECT_TRUE(tried.failed(failed_step(), state_).rolls_back);
  tried.note_scale(64);
  tried.roll_back("", state_, saved, [&] { return restore(tried, saved); });
  EXPECT_EQ(state_.step, 4);
  EXPECT_EQ(state_.good_step, 4);
  EXPECT_EQ(saved.steps(), std::vector<int64_t>{4}) << "that of step 6 is given up";
  EXPECT_EQ(tried.lr_factor(), 0.5) << "the checkpoint does not know of the rollback";
  tried.save(state_);
  EXPECT_EQ(state_.loss_scales, std::vector<double>{64}) << "nor of the scales since";
}

TEST_F(FailurePolicyTest, WithoutACheckpointToGoBackToTheRunEnds) {
  options_.policy = "rollback";
  FailurePolicy tried = policy();
  auto saved = checkpointer();
  const auto error = failure(ExitCode::kNumeric, [&] {
    tried.roll_back("", state_, saved, [&] { return restore(tried, saved); });
  });
  EXPECT_NE(std::string(error.what()).find("none to go back to"), std::string::npos);
}

}  // namespace
}  // namespace stretto::train
