// The learning rate of updates whose micro-batches differ in size by design.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/train/toy_runs.h"

namespace stretto::train {
namespace {

/// Micro-batch i of epoch e wants (1 + i) / 4 of the rate, and in a later epoch ten times as much.
class UnevenSource : public test::ToySource {
 public:
  double rate_factor(int64_t epoch, int64_t index) const override {
    return static_cast<double>(1 + index) / 4 * (epoch == 0 ? 1 : 10);
  }
};

class UnevenTask : public test::Remembering {
 public:
  const data::BatchSource& train_batches() override { return uneven_; }

 private:
  UnevenSource uneven_;
};

class RateFactor : public test::ToyRuns {};

TEST_F(RateFactor, IsThatOfTheFirstMicroBatchOfEachUpdate) {
  auto run = setup("run");
  run.train.update_freq = 3;  // updates begin with micro-batches 0, 3 and 6 of eight
  run.train.max_steps = 5;
  run.schedule = {.name = "constant", .warmup_steps = 0};
  run.optim.lr = 0.01;
  UnevenTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto steps = test::events(run, "train");
  const std::vector<double> table{0.0025, 0.01, 0.0175, 0.025, 0.1};
  ASSERT_EQ(steps.size(), table.size());
  for (size_t i = 0; i < table.size(); ++i) EXPECT_NEAR(steps[i].lr.value(), table[i], 1e-12) << i;
}

TEST_F(RateFactor, ARunThatIsCutInPartsHasTheSameBits) {
  const auto whole = setup("whole"), parts = setup("parts");
  UnevenTask undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t last : {3, 7, -1}) {
    UnevenTask task;
    task.signal_at = last;
    EXPECT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  EXPECT_EQ(test::final_hash(parts), test::final_hash(whole));
  test::Remembering even;
  const auto plain = setup("plain");
  ASSERT_EQ(Trainer(even, plain).run(), ExitCode::kOk);
  EXPECT_NE(test::final_hash(plain), test::final_hash(whole));
}

}  // namespace
}  // namespace stretto::train
