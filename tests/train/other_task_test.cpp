// A task that is no translation goes through the whole loop: points in the plane, their class, and
// scores and counters that nobody else has.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "runs/choose_checkpoint.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"
#include "tests/train/toy_task.h"
#include "train/shown_numbers.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using stretto::test::difference, stretto::test::run_ranks;
using test::events, test::final_hash;

constexpr int64_t kPoints = 32, kPointBatches = 24, kUnits = 16;
constexpr int64_t kFirstValidPoint = 1'000'000;

/// Points [first, first + kPoints), one id each on either side.
data::Batch points_from(int64_t first) {
  data::Batch batch = data::pair_batch();
  for (int64_t i = 0; i < kPoints; ++i) {
    batch.sample_ids.push_back(first + i);
    for (auto* side : {&data::source(batch), &data::target(batch)}) {
      side->values.push_back(first + i);
      side->offsets.push_back(static_cast<int32_t>(i + 1));
    }
  }
  return batch;
}

class Points : public data::BatchSource {
 public:
  int64_t num_batches() const override { return kPointBatches; }
  data::Batch load(int64_t epoch, int64_t index) const override {
    return points_from((epoch * kPointBatches + index) * kPoints);
  }
};

/// Inputs [points, 2] in [-1, 1).
torch::Tensor places(const data::Batch& batch) {
  std::vector<float> values;
  for (const int64_t id : batch.sample_ids) {
    RandomStream random(mix64(21, static_cast<uint64_t>(id)));
    for (int i = 0; i < 2; ++i) values.push_back(static_cast<float>(2 * random.uniform() - 1));
  }
  return torch::tensor(values).view({-1, 2});
}

/// Exclusive or: on which diagonal a point lies. On request a second head also learns how far it is
/// from the middle, of points with even numbers alone.
class XorTask : public Task {
 public:
  explicit XorTask(bool two_heads = false) : two_heads_(two_heads) {
    net_ = torch::nn::Sequential(torch::nn::Linear(2, kUnits), torch::nn::Tanh(),
                                 torch::nn::Linear(kUnits, 2));
    // Not torch's generator, which ranks, as threads, share.
    const torch::NoGradGuard no_grad;
    RandomStream random(1);
    for (auto& parameter : net_->parameters()) {
      std::generate_n(parameter.data_ptr<float>(), parameter.numel(),
                      [&] { return static_cast<float>(random.normal()); });
    }
  }
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  std::map<std::string, std::string> assets() const override { return {}; }

  std::vector<std::string> losses() const override {
    if (two_heads_) return {"xor", "distance"};
    return {"loss"};
  }
  std::vector<std::string> statistics() const override { return {"right"}; }
  std::vector<std::string> counters() const override { return {"points", "upper points"}; }

  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto x = places(batch);
    const auto out = net_->forward(x);
    const auto logits = out.select(1, 0);
    Sums sums{.losses = {torch::binary_cross_entropy_with_logits(logits, classes(x), {}, {},
                                                                 at::Reduction::Sum)},
              .statistics = {right(logits, x)},
              .counts = {std::ssize(batch.sample_ids), (x.select(1, 1) > 0).sum().item<int64_t>()}};
    if (two_heads_) {
      const auto error = (out.select(1, 1) - x.square().sum(1).sqrt()).square();
      sums.losses.push_back((error * is_even(batch)).sum());
    }
    return sums;
  }
  std::vector<double> weights(const data::Batch& batch) const override {
    std::vector<double> weights{static_cast<double>(batch.num_sequences())};
    if (two_heads_) weights.push_back(is_even(batch).sum().item<double>());
    return weights;
  }
  std::vector<Score> measures(const Totals& totals) const override {
    return {{.name = "accuracy", .value = totals.statistics.front() / totals.weights.front()}};
  }

  bool can_validate() const override { return true; }
  Validation validate() override {
    const torch::NoGradGuard no_grad;
    double loss = 0, hits = 0, points = 0;
    for (int64_t i = 0; i < 8; ++i) {
      const auto batch = points_from(kFirstValidPoint + i * kPoints);
      const auto sums = XorTask::loss(prepare(batch), {});
      loss += sums.losses.front().item<double>();
      hits += sums.statistics.front().item<double>();
      points += static_cast<double>(batch.num_sequences());
    }
    const double accuracy = hits / points;
    return {.scores = {{.name = "loss", .value = loss / points},
                       {.name = "accuracy", .value = accuracy, .higher_is_better = true},
                       {.name = "errors", .value = points - hits}},
            .counts = {{"points", static_cast<int64_t>(points)}},
            .samples = {report::RowsSample{{{"point", "(0.5, -0.25)"}, {"class", "other"}}}}};
  }

 private:
  static torch::Tensor classes(const torch::Tensor& x) {
    return (x.select(1, 0) * x.select(1, 1) > 0).to(torch::kFloat);
  }
  static torch::Tensor right(const torch::Tensor& logits, const torch::Tensor& x) {
    return ((logits > 0).to(torch::kFloat) == classes(x)).sum();
  }
  static torch::Tensor is_even(const data::Batch& batch) {
    return (torch::tensor(batch.sample_ids, torch::kLong).remainder(2) == 0).to(torch::kFloat);
  }

  bool two_heads_;
  torch::nn::Sequential net_{nullptr};
  Points source_;
};

class OtherTask : public ::testing::Test {
 protected:
  TrainerSetup setup(const std::string& name) {
    auto setup = test::toy_setup(folder_ / name);
    setup.train.max_steps = 120;
    setup.train.save_every = 40;
    setup.train.update_freq = 2;
    setup.eval = {.every = 20, .best_metric = "accuracy"};
    auto& display = setup.description.display;
    display = {};
    display.numbers = {report::loss_style(),
                       {.name = "accuracy",
                        .decimals = 3,
                        .progress = "acc",
                        .chart = "Accuracy",
                        .higher_is_better = true},
                       {.name = "errors", .chart = "Errors", .of_validation = true}};
    display.rate = {
        .key = "points_per_second", .unit = "points", .short_unit = "points", .batch = "points"};
    return setup;
  }

  testing::TempDir folder_;
};

TEST_F(OtherTask, LearnsWithItsOwnScoresAndCounters) {
  auto run = setup("run");
  XorTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = events(run, "train"), valid = events(run, "valid");
  ASSERT_EQ(train.size(), 120U);
  ASSERT_EQ(valid.size(), 6U);
  EXPECT_GT(valid.back().number("accuracy"), 0.9);
  EXPECT_LT(train.back().loss.value(), train.front().loss.value());
  for (const auto& event : train) {
    EXPECT_EQ(event.number("points"), 2 * kPoints);
    EXPECT_GT(event.number("upper_points"), 0);
    EXPECT_GT(event.number("points_per_second"), 0);
    EXPECT_LE(event.number("accuracy"), 1);
    EXPECT_FALSE(event.number("target_tokens") || event.number("nll") || event.number("bleu"));
  }
  EXPECT_EQ(valid.front().number("points"), 8 * kPoints);
  EXPECT_EQ(valid.front().number("errors"),
            std::round(8 * kPoints * (1 - *valid.front().number("accuracy"))));
}

TEST_F(OtherTask, ItsNumbersStandAtTheirPlacesInTheMetrics) {
  auto run = setup("run");
  run.train.max_steps = 1;
  XorTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const std::string text = read_file(run.run_directory / "metrics.jsonl");
  size_t at = 0;
  for (const char* key :
       {"\"event\":\"train\"", "\"loss\":", "\"accuracy\":", "\"lr\":", "\"grad_norm\":",
        "\"points\":64,", "\"upper_points\":", "\"points_per_second\":", "\"loss_scale\":",
        "\"batch_hash\":", "\"event\":\"valid\"", "\"loss\":", "\"accuracy\":", "\"points\":256,",
        "\"seconds\":", "\"errors\":", "\"event\":\"end\"", "\"weights_hash\":"}) {
    at = text.find(key, at);
    ASSERT_NE(at, std::string::npos) << key << " is missing in\n" << text;
  }
}

TEST_F(OtherTask, TheBestCheckpointIsThatOfItsScore) {
  auto run = setup("run");
  XorTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto valid = events(run, "valid");
  const auto best = std::ranges::max_element(
      valid, {}, [](const auto& event) { return event.number("accuracy").value(); });
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "best").filename(),
            store::step_name(best->step));
}

TEST_F(OtherTask, ARunThatIsCutInPartsEndsWithTheSameWeightsAndNumbers) {
  auto whole = setup("whole"), parts = setup("parts");
  for (auto* run : {&whole, &parts}) run->train.max_steps = 60;
  XorTask undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t steps : {7, 33, 60}) {
    XorTask task;
    parts.train.max_steps = steps;
    ASSERT_EQ(Trainer(task, parts).run(), ExitCode::kOk);
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));
  const auto want = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].loss, want[i].loss) << i;
    EXPECT_EQ(got[i].number("accuracy"), want[i].number("accuracy")) << i;
    EXPECT_EQ(got[i].number("upper_points"), want[i].number("upper_points")) << i;
  }
}

TEST_F(OtherTask, ConsoleAndPageCallItsNumbersAsItDoes) {
  auto run = setup("run");
  run.train.max_steps = 20;
  run.report.html = true;
  XorTask task;
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(", accuracy 0."), std::string::npos) << log;
  EXPECT_NE(log.find(", errors "), std::string::npos) << log;
  EXPECT_NE(log.find(" · acc 0."), std::string::npos) << log;
  EXPECT_NE(log.find(" points/s"), std::string::npos) << log;
  const std::string page = read_file(run.run_directory / "report.html");
  for (const char* words : {"<h3>Accuracy</h3>", "<h3>Errors</h3>", "Points per second",
                            "<dt>point</dt>", "<h2>Samples at step 20</h2>"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
  for (const char* word : {"BLEU", "Perplexity", "token", "Translation"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
}

TEST_F(OtherTask, AScoreThatItDoesNotHaveCannotChooseTheBest) {
  auto run = setup("run");
  run.eval.best_metric = "bleu";
  XorTask task;
  const Error error =
      stretto::testing::failure(ExitCode::kUsage, [&] { Trainer(task, run).run(); });
  EXPECT_NE(std::string(error.what()).find("no score `bleu`"), std::string::npos) << error.what();
  EXPECT_EQ(error.advice(), "it has loss, accuracy, errors");
}

TEST_F(OtherTask, SeveralLossesAreEachShownUnderTheirNames) {
  auto run = setup("run");
  run.train.max_steps = 40;
  XorTask task(/*two_heads=*/true);
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = events(run, "train");
  for (const auto& event : train) {
    EXPECT_NEAR(event.loss.value(), *event.number("xor") + *event.number("distance"), 1e-12);
  }
  EXPECT_LT(train.back().number("distance"), train.front().number("distance"));
}

/// The gradient of sum_i L_i / W_i over the first three micro-batches, by autograd alone.
torch::Tensor gradient_by_hand(double& loss) {
  XorTask task(/*two_heads=*/true);
  optim::Arena arena(task.model());
  std::vector<torch::Tensor> sums(2, torch::zeros({}));
  std::vector<double> weights(2, 0);
  for (int64_t index = 0; index < 3; ++index) {
    const auto batch = Points().load(0, index);
    const auto losses = task.loss(task.prepare(batch), {}).losses;
    for (size_t i = 0; i < 2; ++i) {
      sums[i] = sums[i] + losses[i];
      weights[i] += task.weights(batch)[i];
    }
  }
  const auto all = sums[0] / weights[0] + sums[1] / weights[1];
  all.backward();
  loss = all.item<double>();
  return arena.grads().clone();
}

TEST_F(OtherTask, SeveralLossesAreDividedByTheirWeightsOverTheWholeUpdate) {
  double loss = 0;
  const auto want = gradient_by_hand(loss);
  for (const int size : {1, 2, 3}) {  // with 2 the last micro-batch is shared
    run_ranks(size, [&](const distributed::ProcessGroup& group) {
      XorTask task(/*two_heads=*/true);
      optim::Arena arena(task.model());
      UpdaterSetup how;
      how.train.update_freq = 3;
      Updater updater(task, arena, group, how);
      const auto result = updater.gradients(0, [] { return 0; });
      EXPECT_LE(difference(arena.grads(), want), 1e-5) << size;
      EXPECT_NEAR(result.totals.loss(), loss, 1e-5 * loss) << size;
      EXPECT_NEAR(result.grad_norm, want.norm().item<double>(), 1e-5 * result.grad_norm) << size;
      EXPECT_EQ(result.totals.weights, (std::vector<double>{3 * kPoints, 3 * kPoints / 2.0}));
      EXPECT_EQ(result.totals.counts.front(), 3 * kPoints);
    });
  }
}

}  // namespace
}  // namespace stretto::train
