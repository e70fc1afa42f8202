#include "train/forensics/spikes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "tests/train/bare_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Alternates around 10: the logarithms have a mean of ln kCalmMean and a deviation of 0.1003.
double calm(int step) {
  return step % 2 == 0 ? 9 : 11;
}
const double kCalmMean = std::sqrt(9.0 * 11.0), kCalmSpread = std::log(11.0 / 9) / 2;

ForensicsOptions with(double zscore, const char* policy) {
  ForensicsOptions options;
  options.spike_zscore = zscore;
  options.spike_policy = policy;
  return options;
}

TEST(MovingMoments, AreThePlainOnesInsideTheWindow) {
  MovingMoments moments;
  for (const double value : {2.0, 4.0, 9.0}) moments.add(value, 100, 100);
  EXPECT_NEAR(moments.mean, 5, 1e-12);
  EXPECT_NEAR(moments.variance, 26.0 / 3, 1e-12);
  EXPECT_EQ(moments.count, 3);
}

TEST(MovingMoments, ForgetExponentiallyBeyondIt) {
  MovingMoments moments{.mean = 1, .variance = 0, .count = 4};
  moments.add(3, 4, 4);  // a quarter of the way, and var = 3/4 * (0 + 1/4 * 2^2)
  EXPECT_NEAR(moments.mean, 1.5, 1e-12);
  EXPECT_NEAR(moments.variance, 0.75, 1e-12);
}

TEST(MovingMoments, AMeanThatForgetsSoonerKeepsATrendOutOfTheVariance) {
  MovingMoments slow, quick;
  for (int i = 0; i < 200; ++i) {
    slow.add(0.1 * i, 100, 100);
    quick.add(0.1 * i, 10, 100);
  }
  EXPECT_GT(slow.variance, 30);
  EXPECT_NEAR(quick.mean, 19.9 - 0.9, 0.01);  // nine values behind
  EXPECT_LT(quick.variance, 1);
}

struct Row {
  int step;
  double value;
  bool spike;
};

TEST(SpikeSeries, TableOverSteps) {
  SpikeSeries series(0);
  // Five values without verdict, even for one that will be a spike later.
  for (int step = 1; step <= 4; ++step) EXPECT_FALSE(series.add(calm(step), 6)) << step;
  EXPECT_EQ(series.zscore(100), 0);
  for (int step = 5; step <= 20; ++step) EXPECT_FALSE(series.add(calm(step), 6)) << step;
  // z is the distance of logarithms, in deviations.
  EXPECT_NEAR(series.zscore(kCalmMean * std::exp(6 * kCalmSpread)), 6, 1e-9);
  EXPECT_NEAR(series.zscore(kCalmMean * std::exp(-6 * kCalmSpread)), -6, 1e-9);
  const std::vector<Row> rows{
      {21, 19, true},     // 6.4 deviations
      {22, 18, false},    // 5.9, below the threshold; enters the averages
      {23, 3.0, false},   // a fall is no spike
      {24, kNan, false},  // is for forensics, not for this
      {25, kInfinity, false},
  };
  for (const Row& row : rows) EXPECT_EQ(series.add(row.value, 6), row.spike) << row.step;
  // The mean remembers twenty values.
  double mean = std::log(kCalmMean);
  for (const double value : {18.0, 3.0}) mean += (std::log(value) - mean) / 20;
  EXPECT_NEAR(series.mean(), std::exp(mean), 1e-9);
}

TEST(SpikeSeries, ASpikeDoesNotHideTheNextOne) {
  SpikeSeries series(0);
  for (int step = 1; step <= 40; ++step) series.add(calm(step), 6);
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(series.add(1000, 6));
  EXPECT_NEAR(series.mean(), kCalmMean, 0.05);
  EXPECT_FALSE(series.add(calm(0), 6));
  EXPECT_TRUE(series.add(20, 6));
}

TEST(SpikeSeries, TenInARowAreANewLevel) {
  SpikeSeries series(0);
  for (int step = 1; step <= 40; ++step) series.add(calm(step), 6);
  for (int step = 1; step <= 9; ++step) EXPECT_TRUE(series.add(50 + calm(step), 6)) << step;
  // A value of the old level interrupts the row, and it begins anew.
  EXPECT_FALSE(series.add(10, 6));
  for (int step = 1; step <= 10; ++step) EXPECT_TRUE(series.add(50 + calm(step), 6)) << step;
  EXPECT_NEAR(series.mean(), std::sqrt(59.0 * 61), 1e-9);
  for (int step = 1; step <= 10; ++step) EXPECT_FALSE(series.add(50 + calm(step), 6)) << step;
  EXPECT_TRUE(series.add(70, 6));
}

TEST(SpikeSeries, ASeriesThatHardlyMovesHasAFloorOfOnePercent) {
  SpikeSeries series(0);
  for (int step = 0; step < 30; ++step) series.add(2.0, 6);
  EXPECT_NEAR(series.zscore(2.1), std::log(1.05) / 0.01, 1e-9);
  SpikeSeries zeros(0.5);
  for (int step = 0; step < 30; ++step) EXPECT_FALSE(zeros.add(0.0, 6));
  EXPECT_EQ(zeros.zscore(1), 0);  // no scale to measure with
}

struct Beginning {
  int values;    ///< of a series that does not move
  double found;  ///< the next one, times the mean, is a spike; a tenth less is none
};

// Series like those of the gradient norm; a table over steps.
TEST(SpikeSeries, TheSpreadKnowsTheBeginningOfARun) {
  for (const auto& row : std::vector<Beginning>{
           {5, 17.4}, {10, 15.1}, {20, 11.7}, {50, 6.2}, {100, 3.02}, {200, 1.51}, {500, 1.063}}) {
    SpikeSeries series(0.5);
    for (int step = 0; step < row.values; ++step) EXPECT_FALSE(series.add(2, 6));
    EXPECT_GT(series.zscore(2 * row.found), 6) << row.values;
    EXPECT_LT(series.zscore(2 * (1 + 0.9 * (row.found - 1))), 6) << row.values;
  }
}

/// Times e^(deviation * normal), and the factors by which it grows.
std::vector<double> noisy(double start, double growth, double deviation, int steps, int seed) {
  std::vector<double> series;
  RandomStream random(static_cast<uint64_t>(seed));
  for (int step = 0; step < steps; ++step) {
    const double trend = std::pow(growth, std::min(1.0, step / 100.0));
    series.push_back(start * trend * std::exp(deviation * random.normal()));
  }
  return series;
}

int spikes_of(SpikeSeries& series, const std::vector<double>& values) {
  int spikes = 0;
  for (const double value : values) spikes += series.add(value, 6) ? 1 : 0;
  return spikes;
}

struct Course {
  const char* what;
  double start, growth, deviation;
  double found;  ///< times the last mean: surely something happened
};

// Gradient norms as they go in real runs: without a warning, and a true spike behind them is found.
TEST(SpikeSeries, OrdinaryRunsAreSilentAndTheirSpikesAreFound) {
  const std::vector<Course> courses{
      {"fine-tuning begins with small gradients that grow", 0.3, 20, 0.4, 30},
      {"the same, and single batches are hard", 0.5, 10, 0.8, 400},
      {"pretraining after its warm-up", 1, 1, 0.05, 1.5},
      {"gradients fall while a model learns", 30, 0.01, 0.3, 20},
      {"late epochs of fine-tuning: few batches have anything to learn", 0.3, 1, 1.5, 3000},
  };
  for (const auto& course : courses) {
    for (int seed = 1; seed <= 20; ++seed) {
      SpikeSeries series(0.5);
      const auto values = noisy(course.start, course.growth, course.deviation, 500, seed);
      EXPECT_EQ(spikes_of(series, values), 0) << course.what << ", " << seed;
      EXPECT_TRUE(series.add(course.found * series.mean(), 6)) << course.what << ", " << seed;
    }
  }
}

/// Gradient norms of the first 200 updates of MiniLM-L6 on SST-2: AdamW, a rate of 5e-5, a warm-up
/// over a tenth of 500 updates, batches of 32.
constexpr double kMiniLmOnSst2[] = {
    0.38,  0.347, 0.309, 0.696, 0.537, 0.393, 0.306, 0.295, 0.58,  0.362, 0.27,  0.833, 0.301,
    0.511, 0.327, 0.746, 0.587, 0.374, 0.433, 0.422, 0.628, 0.313, 0.278, 0.465, 0.355, 0.294,
    0.936, 0.334, 0.399, 0.593, 0.348, 0.436, 0.955, 0.397, 0.417, 0.437, 0.397, 0.517, 0.683,
    0.426, 0.687, 0.434, 0.617, 0.626, 0.664, 0.715, 0.856, 0.874, 0.962, 0.962, 1.12,  1.51,
    1.51,  1.98,  1.73,  2.35,  2.07,  2.09,  5.27,  3.55,  3.19,  2.6,   4.86,  3.43,  3.93,
    3.44,  9,     3.81,  7.96,  3.68,  5.68,  5.31,  3.75,  4.95,  6,     3.46,  8.7,   6.4,
    4.69,  7.4,   10.2,  1.66,  1.71,  2.98,  5.82,  3.03,  6.15,  5.48,  8,     5.1,   5.45,
    7.28,  7.38,  4.36,  7.09,  3.68,  4.58,  3.34,  4.13,  2.79,  7.14,  7.18,  6.54,  4.11,
    3.15,  4.59,  4.49,  4.46,  2.64,  5.67,  3.83,  7.99,  5.27,  4.18,  14.9,  9.09,  6.71,
    5.55,  2.09,  3.85,  6.08,  5.68,  5.61,  4.81,  3.56,  3.08,  2.83,  2.45,  2.3,   6.44,
    2.99,  8.33,  2.26,  4.18,  2.41,  2.6,   12.3,  5.76,  2.56,  5.89,  1.93,  4.87,  4.03,
    3.14,  3.19,  4.51,  6.08,  5.68,  3.13,  8.27,  2.56,  4.31,  3.19,  4.98,  5.14,  2.94,
    5.97,  3.87,  5.46,  6.68,  8.16,  9.09,  6.14,  3.42,  3.45,  4.43,  6.29,  3.13,  3,
    2.78,  3.64,  3.81,  2.94,  4.03,  3.18,  2.53,  4.17,  4.82,  4.21,  4.95,  3.13,  3.8,
    3.05,  6.48,  4.04,  3.18,  6.26,  3.93,  3.12,  2.26,  3.11,  2.71,  4.13,  4.06,  6.38,
    5.43,  4.76,  3.41,  5.62,  2.87,
};

// By the deviations of the values themselves three of them were spikes.
TEST(SpikeSeries, AFineTunedModelIsSilentAndItsExplosionsAreFound) {
  SpikeSeries series(0.5);
  int step = 0;
  for (const double norm : kMiniLmOnSst2) {
    EXPECT_FALSE(series.add(norm, 6)) << "update " << step + 1;
    ++step;
    EXPECT_TRUE(step % 10 != 0 || series.zscore(500) > 6) << "after update " << step;
  }
  EXPECT_TRUE(series.add(500, 6));
}

TEST(SpikeSeries, AnExplosionInTheFirstUpdatesIsFound) {
  for (const int before : {5, 8, 15, 30}) {
    for (int seed = 1; seed <= 20; ++seed) {
      SpikeSeries series(0.5);
      EXPECT_EQ(spikes_of(series, noisy(1, 1, 0.2, before, seed)), 0) << before;
      EXPECT_TRUE(series.add(50, 6)) << before << ", " << seed;
    }
  }
}

TEST(SpikeSeries, AGrowthWithoutEndIsFoundWithinAFewUpdates) {
  SpikeSeries series(0.5);
  EXPECT_EQ(spikes_of(series, noisy(1, 10, 0.4, 300, 3)), 0);
  int found_at = 0;
  for (int step = 1; step <= 12 && found_at == 0; ++step) {
    if (series.add(10 * std::pow(4, step), 6)) found_at = step;
  }
  EXPECT_GE(found_at, 1);
  EXPECT_LE(found_at, 3);
}

TEST(SpikeSeries, OneValueNearZeroMakesTheOthersNoSpikes) {
  SpikeSeries series(0.2);
  for (int step = 1; step <= 200; ++step) series.add(calm(step), 6);
  EXPECT_FALSE(series.add(1e-30, 6));
  EXPECT_FALSE(series.add(0, 6));
  for (int step = 1; step <= 50; ++step) EXPECT_FALSE(series.add(calm(step), 6)) << step;
  EXPECT_TRUE(series.add(2000, 6)) << "counted as they stood, no spread would have an end";
}

TEST(SpikeSeries, NegativeValuesAreJudgedWithoutLogarithms) {
  SpikeSeries series(0.2);
  for (int step = 1; step <= 30; ++step) series.add(0.5, 6);
  // Mean -10, deviation 1.
  for (int step = 1; step <= 20; ++step) EXPECT_FALSE(series.add(calm(step) - 20, 6)) << step;
  EXPECT_NEAR(series.mean(), -10, 1e-9);
  EXPECT_NEAR(series.zscore(-4), 6, 1e-9);
  EXPECT_FALSE(series.add(-4.1, 6));
  EXPECT_TRUE(series.add(3, 6));
  std::map<std::string, double> state;
  series.save("loss_", state);
  SpikeSeries restored(0.2);
  restored.restore("loss_", state);
  EXPECT_EQ(restored.zscore(3), series.zscore(3));
}

struct UpdateRow {
  int step;
  double loss, grad_norm;
  bool loss_spike, norm_spike;
};

TEST(SpikeDetector, EitherSpikeLeavesTheUpdateOutAndOnlyWhenAsked) {
  const std::vector<UpdateRow> rows{
      {31, 40, 10, true, false},   // the loss alone
      {32, 10, 120, false, true},  // the gradient norm alone
      {33, 11, 9, false, false},   // neither
      {34, 40, 150, true, true},   // both
      {35, 30, 10, true, false},   // just above the threshold
      {36, 28, 10, false, false},  // and just below it
      {37, 2, 1, false, false},    // falls are none
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
  const auto loss = detector.look(40, 10);
  const double spread = std::sqrt(kCalmSpread * kCalmSpread + 0.2 * 0.2 * std::exp(-30.0 / 50));
  EXPECT_NEAR(loss.loss_zscore, std::log(40 / kCalmMean) / spread, 0.05);
  EXPECT_EQ(loss.text.rfind("loss 40.0000 stands 7.8 deviations above its mean 9.9", 0), 0U)
      << loss.text;
  const auto both = detector.look(40, 140);
  EXPECT_EQ(both.text.substr(0, 5), "loss ");
  EXPECT_NE(both.text.find(", gradient norm 140.0000 stands"), std::string::npos) << both.text;
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
  Sums loss(const Prepared& batch, const StepContext& context) override {
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
