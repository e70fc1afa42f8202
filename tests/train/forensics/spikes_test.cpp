#include "train/forensics/spikes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "tests/train/bare_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Alternates around 10 with a deviation of 1.
double calm(int step) {
  return step % 2 == 0 ? 9 : 11;
}

ForensicsOptions with(double zscore, const char* policy) {
  ForensicsOptions options;
  options.spike_zscore = zscore;
  options.spike_policy = policy;
  return options;
}

TEST(MovingMoments, AreThePlainOnesInsideTheWindow) {
  MovingMoments moments;
  for (const double value : {2.0, 4.0, 9.0}) moments.add(value, 100);
  EXPECT_NEAR(moments.mean, 5, 1e-12);
  EXPECT_NEAR(moments.variance, 26.0 / 3, 1e-12);
  EXPECT_EQ(moments.count, 3);
}

TEST(MovingMoments, ForgetExponentiallyBeyondIt) {
  MovingMoments moments{.mean = 1, .variance = 0, .count = 4};
  moments.add(3, 4);  // a quarter of the way, and var = 3/4 * (0 + 1/4 * 2^2)
  EXPECT_NEAR(moments.mean, 1.5, 1e-12);
  EXPECT_NEAR(moments.variance, 0.75, 1e-12);
}

struct Row {
  int step;
  double value;
  bool spike;
};

TEST(SpikeSeries, TableOverSteps) {
  SpikeSeries series;
  // Twenty values without verdict, even for one that will be a spike later.
  for (int step = 1; step <= 19; ++step) EXPECT_FALSE(series.add(calm(step), 6)) << step;
  EXPECT_EQ(series.zscore(100), 0);
  EXPECT_FALSE(series.add(calm(20), 6));
  // Mean 10, deviation 1: z is the distance from 10.
  EXPECT_NEAR(series.zscore(16), 6, 1e-9);
  EXPECT_NEAR(series.zscore(4), -6, 1e-9);
  const std::vector<Row> rows{
      {21, 16.5, true},   // 6.5 deviations
      {22, 15.9, false},  // below the threshold; enters the averages
      {23, 3.0, false},   // a fall is no spike
      {24, kNan, false},  // is for forensics, not for this
      {25, kInfinity, false},
  };
  for (const Row& row : rows) EXPECT_EQ(series.add(row.value, 6), row.spike) << row.step;
  EXPECT_NEAR(series.mean(), (20 * 10 + 15.9 + 3) / 22, 1e-9);
}

TEST(SpikeSeries, ASpikeDoesNotHideTheNextOne) {
  SpikeSeries series;
  for (int step = 1; step <= 40; ++step) series.add(calm(step), 6);
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(series.add(1000, 6));
  EXPECT_NEAR(series.mean(), 10, 1e-9);
  EXPECT_FALSE(series.add(calm(0), 6));
  EXPECT_TRUE(series.add(20, 6));
}

TEST(SpikeSeries, TenInARowAreANewLevel) {
  SpikeSeries series;
  for (int step = 1; step <= 40; ++step) series.add(calm(step), 6);
  for (int step = 1; step <= 9; ++step) EXPECT_TRUE(series.add(50 + calm(step), 6)) << step;
  // A value of the old level interrupts the row, and it begins anew.
  EXPECT_FALSE(series.add(10, 6));
  for (int step = 1; step <= 10; ++step) EXPECT_TRUE(series.add(50 + calm(step), 6)) << step;
  EXPECT_NEAR(series.mean(), 60, 1e-9);
  // Ten values of it are known: no verdict until there are twenty.
  EXPECT_EQ(series.zscore(1000), 0);
  for (int step = 1; step <= 10; ++step) EXPECT_FALSE(series.add(50 + calm(step), 6)) << step;
  EXPECT_TRUE(series.add(70, 6));
}

TEST(SpikeSeries, ASeriesThatHardlyMovesHasAFloorOfOnePercent) {
  SpikeSeries series;
  for (int step = 0; step < 30; ++step) series.add(2.0, 6);
  EXPECT_NEAR(series.zscore(2.1), 0.1 / 0.02, 1e-9);
  SpikeSeries zeros;
  for (int step = 0; step < 30; ++step) zeros.add(0.0, 6);
  EXPECT_EQ(zeros.zscore(1), 0);  // no scale to measure with
}

struct UpdateRow {
  int step;
  double loss, grad_norm;
  bool loss_spike, norm_spike;
};

TEST(SpikeDetector, EitherSpikeLeavesTheUpdateOutAndOnlyWhenAsked) {
  const std::vector<UpdateRow> rows{
      {31, 30, 10, true, false},    // the loss alone
      {32, 10, 30, false, true},    // the gradient norm alone
      {33, 11, 9, false, false},    // neither
      {1034, 30, 40, true, true},   // both
      {1035, 17, 10, true, false},  // just above the threshold
      {1036, 2, 1, false, false},   // falls are none
  };
  for (const char* policy : {"report", "skip"}) {
    SpikeDetector detector(with(6, policy));
    for (int step = 1; step <= 30; ++step) {
      EXPECT_EQ(detector.look(calm(step), calm(step)).text, "");
    }
    for (const auto& row : rows) {
      SCOPED_TRACE(std::string(policy) + " " + std::to_string(row.step));
      const auto verdict = detector.look(row.loss, row.grad_norm);
      EXPECT_EQ(verdict.loss, row.loss_spike);
      EXPECT_EQ(verdict.grad_norm, row.norm_spike);
      EXPECT_EQ(verdict.skip, std::string(policy) == "skip" && (row.loss_spike || row.norm_spike));
      EXPECT_EQ(verdict.text.empty(), !row.loss_spike && !row.norm_spike);
      EXPECT_EQ(verdict.text.ends_with("; the update is left out"), verdict.skip) << verdict.text;
    }
  }
}

TEST(SpikeDetector, TheLineNamesWhatSpiked) {
  SpikeDetector detector(with(6, "report"));
  for (int step = 1; step <= 30; ++step) detector.look(calm(step), calm(step));
  const auto loss = detector.look(30, 10);
  EXPECT_NEAR(loss.loss_zscore, 20, 1e-9);
  EXPECT_EQ(loss.text, "loss 30.0000 stands 20.0 deviations above its mean 10.0000");
  const auto both = detector.look(30, 40);
  EXPECT_EQ(both.text.substr(0, 5), "loss ");
  EXPECT_NE(both.text.find(", gradient norm 40.0000 stands"), std::string::npos) << both.text;
}

TEST(SpikeDetector, ALossThatMovedForGoodCostsTenUpdates) {
  SpikeDetector detector(with(6, "skip"));
  for (int step = 1; step <= 30; ++step) detector.look(calm(step), calm(step));
  for (int step = 31; step <= 60; ++step) {
    EXPECT_EQ(detector.look(50 + calm(step), calm(step)).skip, step <= 40) << step;
  }
}

TEST(SpikeDetector, ThresholdZeroIsOff) {
  SpikeDetector detector(with(0, "skip"));
  for (int step = 1; step <= 30; ++step) detector.look(1, 1);
  const auto verdict = detector.look(1e9, 1e9);
  EXPECT_FALSE(verdict.loss || verdict.grad_norm || verdict.skip);
}

TEST(SpikeDetector, AnUpdateThatIsNotFiniteLeavesNoTrace) {
  SpikeDetector detector(with(6, "skip"));
  for (int step = 1; step <= 30; ++step) detector.look(calm(step), calm(step));
  const auto before = detector.state();
  EXPECT_FALSE(detector.look(kNan, 1000).skip);
  EXPECT_FALSE(detector.look(1000, kInfinity).loss);
  EXPECT_EQ(detector.state(), before);
}

TEST(SpikeDetector, ARestoredOneDecidesAsTheOneThatWentOn) {
  const auto loss = [](int step) { return step >= 60 && step < 75 ? 40.0 : calm(step); };
  const auto norm = [](int step) { return step >= 58 && step < 66 ? 40.0 : calm(step); };
  SpikeDetector whole(with(6, "skip"));
  for (int cut : {5, 25, 64, 72}) {
    SpikeDetector first(with(6, "skip")), second(with(6, "skip")), reference(with(6, "skip"));
    for (int step = 1; step <= cut; ++step) {
      first.look(loss(step), norm(step));
      reference.look(loss(step), norm(step));
    }
    second.restore(first.state());
    for (int step = cut + 1; step <= 110; ++step) {
      const auto want = reference.look(loss(step), norm(step));
      const auto got = second.look(loss(step), norm(step));
      EXPECT_EQ(got.loss_zscore, want.loss_zscore) << cut << " " << step;
      EXPECT_EQ(got.grad_norm_zscore, want.grad_norm_zscore) << cut << " " << step;
      EXPECT_EQ(got.skip, want.skip) << cut << " " << step;
    }
  }
}

/// One sample a batch, and one weight; an offset of the loss leaves the gradient as it is.
class OffsetTask : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const data::Batch& batch, const StepContext& context) override {
    const auto distance = net_->weight - 3;
    const double offset = context.update == spike_at ? 1e4 : 5;
    return sums(distance.square().sum() + offset, batch);
  }

  int64_t spike_at = -1;

 private:
  class Source : public data::BatchSource {
   public:
    int64_t num_batches() const override { return 4; }
    data::Batch load(int64_t, int64_t index) const override {
      auto batch = data::pair_batch({index});
      for (auto* side : {&data::source(batch), &data::target(batch)}) {
        side->values = {3};
        side->offsets = {0, 1};
      }
      return batch;
    }
  };
  struct Net : torch::nn::Module {
    torch::Tensor weight = register_parameter("weight", torch::ones({1}));
  };
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
  Source source_;
};

struct Trained {
  double weight = 0;
  size_t attempts = 0;
};

// After `steps` updates, the 31st of which has a spike of the loss alone unless `calm`.
Trained trained(int64_t steps, const char* policy, bool calm = false) {
  const auto run = std::filesystem::temp_directory_path() /
                   ("stretto_spikes_" + std::to_string(::getpid()) + policy);
  std::filesystem::create_directories(run);
  OffsetTask task;
  task.spike_at = calm ? -1 : 30;
  TrainerSetup setup;
  setup.train.max_steps = steps;
  setup.train.forensics = with(6, policy);
  setup.optim.lr = 1e-3;
  setup.schedule = {.name = "constant", .warmup_steps = 0};
  setup.report = {.every = 1, .tensorboard = false, .html = false};
  setup.run_directory = run;
  setup.identity = {.run_id = "test", .config_hash = "hash"};
  EXPECT_EQ(Trainer(task, setup).run(), ExitCode::kOk);
  const auto events = report::read_metrics(run / "metrics.jsonl");  // the last one is the end
  const size_t attempts = events.size() - 1;
  std::filesystem::remove_all(run);
  return {task.model().parameters()[0].item<double>(), attempts};
}

TEST(SpikesInTraining, ASpikeOfTheLossAloneLeavesTheWeightsOnRequest) {
  const Trained calm = trained(31, "skip", /*calm=*/true), skip = trained(31, "skip");
  EXPECT_EQ(skip.attempts, 32U) << "another update makes up for it";
  EXPECT_EQ(skip.weight, calm.weight);
  EXPECT_NE(skip.weight, trained(32, "skip").weight);
  EXPECT_EQ(trained(31, "report").attempts, 31U);
}

}  // namespace
}  // namespace stretto::train
