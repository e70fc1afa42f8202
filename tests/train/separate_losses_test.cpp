// A task whose micro-batches each have one of two losses, as with two decoders behind one encoder.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"
#include "tests/train/toy_task.h"
#include "train/forensics/forensics_report.h"
#include "train/trainer.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

using stretto::test::difference, stretto::test::run_ranks;

/// Micro-batches of 4, 5 or 6 samples; the pattern says to which head each of an epoch belongs.
class Streams : public data::BatchSource {
 public:
  explicit Streams(std::vector<int64_t> pattern) : pattern_(std::move(pattern)) {}
  int64_t num_batches() const override { return std::ssize(pattern_); }
  data::Batch load(int64_t epoch, int64_t index) const override {
    data::Batch batch = data::pair_batch();
    const int64_t first = 10 * (epoch * num_batches() + index);
    for (int64_t i = 0; i < 4 + index % 3; ++i) {
      batch.sample_ids.push_back(first + i);
      data::source(batch).append({first + i});
      data::target(batch).append({first + i});
    }
    batch.stream = pattern_[static_cast<size_t>(index)];
    return batch;
  }

 private:
  std::vector<int64_t> pattern_;
};

struct TwoHeadedNet : torch::nn::Module {
  torch::nn::Linear trunk{nullptr}, first{nullptr}, second{nullptr};

  TwoHeadedNet() {
    trunk = register_module("trunk", torch::nn::Linear(3, 40));
    first = register_module("first", torch::nn::Linear(40, 30));
    second = register_module("second", torch::nn::Linear(40, 20));
    // Not torch's generator, which ranks, as threads, share.
    const torch::NoGradGuard no_grad;
    RandomStream random(1);
    for (auto& parameter : parameters()) {
      std::generate_n(parameter.data_ptr<float>(), parameter.numel(),
                      [&] { return static_cast<float>(0.3 * random.normal()); });
    }
  }
};

/// Squares of what the head of a micro-batch makes of its samples. The second head counts
/// threefold.
class TwoHeadedTask : public Task {
 public:
  static constexpr double kSecond = 3;

  explicit TwoHeadedTask(std::vector<int64_t> pattern) : source_(std::move(pattern)) {}
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  std::vector<std::string> losses() const override { return {"first", "second"}; }
  bool has_all_losses_together() const override { return false; }
  std::vector<std::string> counters() const override { return {"samples"}; }
  std::vector<double> weights(const data::Batch& batch) const override {
    std::vector<double> weights(2, 0);
    weights[static_cast<size_t>(batch.stream)] = static_cast<double>(batch.num_sequences());
    return weights;
  }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    std::vector<float> values;
    for (const int64_t id : batch.sample_ids) {
      RandomStream random(mix64(7, static_cast<uint64_t>(id)));
      for (int i = 0; i < 3; ++i) values.push_back(static_cast<float>(random.normal()));
    }
    const auto rows = torch::tanh(net_->trunk(torch::tensor(values).view({-1, 3})));
    Sums sums{.losses = {torch::zeros({}), torch::zeros({})}, .counts = {batch.num_sequences()}};
    if (batch.stream == 0) {
      sums.losses[0] = net_->first(rows).square().sum();
    } else {
      sums.losses[1] = kSecond * net_->second(rows).square().sum();
    }
    return sums;
  }
  bool can_validate() const override { return false; }
  Validation validate() override { return {}; }
  std::map<std::string, std::string> assets() const override { return {}; }

 private:
  std::shared_ptr<TwoHeadedNet> net_ = std::make_shared<TwoHeadedNet>();
  Streams source_;
};

struct ByHand {
  torch::Tensor gradient;
  double loss = 0;
};

/// The gradient of sum_k L_k / W_k over micro-batches [begin, begin + count), by autograd alone.
ByHand by_hand(const std::vector<int64_t>& pattern, int64_t begin, int64_t count) {
  TwoHeadedTask task(pattern);
  optim::Arena arena(task.model());
  std::vector<torch::Tensor> sums(2, torch::zeros({}));
  std::vector<double> weights(2, 0);
  for (int64_t index = begin; index < begin + count; ++index) {
    const auto batch = Streams(pattern).load(0, index);
    const auto head = static_cast<size_t>(batch.stream);
    sums[head] = sums[head] + task.loss(task.prepare(batch), {}).losses[head];
    weights[head] += static_cast<double>(batch.num_sequences());
  }
  torch::Tensor all = torch::zeros({});
  for (size_t head = 0; head < 2; ++head) {
    if (weights[head] > 0) all = all + sums[head] / weights[head];
  }
  all.backward();
  return {arena.grads().clone(), all.item<double>()};
}

// Ranks are threads here: more threads inside each would only be slower.
class SeparateLosses : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

  testing::TempDir folder_;

 private:
  int threads_before_ = at::get_num_threads();
};

// In the first update of two ranks each has a head of its own, in the second they change, and in
// the third and fourth one head has no micro-batch at all.
const std::vector<int64_t> kPattern{0, 1, 1, 0, 0, 0, 1, 1};

TEST_F(SeparateLosses, MakeTheGradientOfAnyUpdateWhoeverHasWhichHead) {
  std::vector<ByHand> want;
  for (int64_t update = 0; update < 4; ++update) want.push_back(by_hand(kPattern, 2 * update, 2));
  for (const std::string strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const bool deterministic : {false, true}) {
      for (const int ranks : {1, 2, 4}) {  // with 4 two share a micro-batch
        std::vector<std::vector<torch::Tensor>> owned(
            want.size(), std::vector<torch::Tensor>(static_cast<size_t>(ranks)));
        run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
          TwoHeadedTask task(kPattern);
          optim::Arena arena(task.model());
          UpdaterSetup how;
          how.train.update_freq = 2;
          how.dist.strategy = strategy;
          how.dist.deterministic = deterministic;
          how.dist.bucket_bytes = 2048;
          Updater updater(task, arena, group, how);
          for (size_t u = 0; u < want.size(); ++u) {
            const auto result = updater.gradients(static_cast<int64_t>(u), [] { return 0; });
            EXPECT_TRUE(result.finite);
            EXPECT_NEAR(result.totals.loss(), want[u].loss, 1e-5 * want[u].loss);
            const auto slice = updater.owned();
            owned[u][static_cast<size_t>(group.rank())] =
                arena.grads().narrow(0, slice.begin, slice.size()).clone();
          }
        });
        for (size_t u = 0; u < want.size(); ++u) {
          SCOPED_TRACE(strategy + (deterministic ? ", deterministic, " : ", ") +
                       std::to_string(ranks) + " ranks, update " + std::to_string(u));
          const auto whole = strategy == "sharded" ? torch::cat(owned[u]) : owned[u][0];
          EXPECT_LE(difference(whole, want[u].gradient), 1e-5);
        }
      }
    }
  }
}

TEST_F(SeparateLosses, OfAHeadWithoutAMicroBatchThereIsNoGradient) {
  TwoHeadedTask task({0, 0});
  optim::Arena arena(task.model());
  UpdaterSetup how;
  how.train.update_freq = 2;
  Updater updater(task, arena, {}, how);
  const auto result = updater.gradients(0, [] { return 0; });
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.totals.weights, (std::vector<double>{9, 0}));
  EXPECT_EQ(result.totals.losses[1], 0);
  EXPECT_EQ(updater.noise_scale().count(), 0);
  for (const auto& slot : arena.slots()) {
    const double largest = optim::Arena::view(arena.grads(), slot).abs().max().item<float>();
    EXPECT_EQ(largest == 0, slot.name.starts_with("second.")) << slot.name;
  }
}

TEST_F(SeparateLosses, AnUpdateOfOneHeadAloneIsThatOfItsMean) {
  TwoHeadedTask task({1});
  const auto batch = Streams({1}).load(0, 0);
  const double sum = task.loss(task.prepare(batch), {}).losses[1].item<double>();
  optim::Arena arena(task.model());
  Updater updater(task, arena, {}, {});
  const auto result = updater.gradients(0, [] { return 0; });
  EXPECT_NEAR(result.totals.loss(), sum / 4, 1e-5 * sum);
}

TEST_F(SeparateLosses, AreShownOnlyInUpdatesThatHaveThem) {
  auto run = test::toy_setup(folder_ / "run");
  run.train.max_steps = 4;
  run.train.update_freq = 2;
  TwoHeadedTask task(kPattern);
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = test::events(run, "train");
  ASSERT_EQ(train.size(), 4U);
  for (size_t i = 0; i < train.size(); ++i) {
    EXPECT_TRUE(std::isfinite(train[i].loss.value())) << i;
    EXPECT_EQ(train[i].number("first").has_value(), i != 3) << i;
    EXPECT_EQ(train[i].number("second").has_value(), i != 2) << i;
  }
}

/// The first head's loss is NaN in the first update.
class SpoiltTask : public TwoHeadedTask {
 public:
  using TwoHeadedTask::TwoHeadedTask;
  Sums loss(const Prepared& batch, const StepContext& context) override {
    Sums sums = TwoHeadedTask::loss(batch, context);
    if (context.update == 0) sums.losses[0] = sums.losses[0] * NAN;
    return sums;
  }
};

TEST_F(SeparateLosses, AReportHasWhatTheUpdateDividedThemBy) {
  auto run = test::toy_setup(folder_ / "run");
  run.train.max_steps = 1;
  run.train.update_freq = 2;
  SpoiltTask task({0, 1});
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto saved = read_report(run.run_directory / "forensics" / "step_00000001.json");
  EXPECT_EQ(saved.report.divisors, (std::vector<double>{4, 5}));
  EXPECT_EQ(saved.report.first.name, "loss");
}

TEST_F(SeparateLosses, AreDividedByTheWeightsOfAllRanks) {
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    TwoHeadedTask task({0, 1});
    optim::Arena arena(task.model());
    UpdaterSetup how;
    how.train.update_freq = 2;
    Updater updater(task, arena, group, how);
    updater.gradients(0, [] { return 0; });
    EXPECT_EQ(updater.divisors(), (std::vector<double>{4, 5}));
  });
}

TEST_F(SeparateLosses, ARunThatIsCutInPartsEndsWithTheSameWeights) {
  auto whole = test::toy_setup(folder_ / "whole"), parts = test::toy_setup(folder_ / "parts");
  TwoHeadedTask undisturbed({0, 1, 0});
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t steps : {2, 7, 12}) {
    TwoHeadedTask task({0, 1, 0});
    parts.train.max_steps = steps;
    ASSERT_EQ(Trainer(task, parts).run(), ExitCode::kOk);
  }
  EXPECT_EQ(test::final_hash(parts), test::final_hash(whole));
}

TEST_F(SeparateLosses, OfWhichAllButOneIsFrozenStillTrain) {
  TwoHeadedTask task({0, 1});
  auto& net = dynamic_cast<TwoHeadedNet&>(task.model());
  for (auto& parameter : net.trunk->parameters()) parameter.set_requires_grad(false);
  for (auto& parameter : net.first->parameters()) parameter.set_requires_grad(false);
  optim::Arena arena(net);
  UpdaterSetup how;
  how.train.update_freq = 2;
  Updater updater(task, arena, {}, how);
  EXPECT_TRUE(updater.gradients(0, [] { return 0; }).finite);
  EXPECT_GT(arena.grads().abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace stretto::train
