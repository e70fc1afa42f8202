// Optimizers that look at whole tensors, with every way in which processes share a step.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"
#include "tests/train/bare_task.h"
#include "tests/train/strategies.h"
#include "tests/train/toy_task.h"
#include "train/updater.h"

namespace stretto::train {
namespace {

using stretto::test::difference, stretto::test::run_ranks;
using train::test::kStrategies;

/// Eight micro-batches an epoch; batch i holds samples 2i and 2i+1, one target token each.
class Numbered : public data::BatchSource {
 public:
  int64_t num_batches() const override { return 8; }
  data::Batch load(int64_t, int64_t index) const override { return test::toy_batch(index); }
};

/// Least squares behind a layer of tanh: 320,000 weights, which are five blocks of a norm for one
/// to four processes to share, with borders inside of both matrices.
class TwoLayers : public stretto::test::BareTask {
 public:
  TwoLayers() {
    net_ = torch::nn::Sequential(torch::nn::Linear(500, 400), torch::nn::Tanh(),
                                 torch::nn::Linear(400, 301));
    // Not torch's generator, which the ranks, as threads, share.
    const torch::NoGradGuard no_grad;
    RandomStream random(1);
    for (torch::Tensor& parameter : net_->parameters()) fill(parameter, random, 0.05);
  }
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto rows = static_cast<int64_t>(batch.sample_ids.size());
    torch::Tensor x = torch::empty({rows, 500}), y = torch::empty({rows, 301});
    for (int64_t row = 0; row < rows; ++row) {
      RandomStream random(static_cast<uint64_t>(batch.sample_ids[static_cast<size_t>(row)]));
      for (torch::Tensor side : {x[row], y[row]}) fill(side, random, 1);
    }
    return sums((net_->forward(x) - y).square().sum(), batch);
  }

 private:
  static void fill(torch::Tensor& tensor, RandomStream& random, double scale) {
    std::generate_n(tensor.data_ptr<float>(), tensor.numel(),
                    [&] { return static_cast<float>(scale * random.normal()); });
  }

  torch::nn::Sequential net_;
  Numbered source_;
};

/// What is off in most tests.
struct Extra {
  double ema_decay = 0, gradient_noise = 0, weight_noise = 0, sparsity = 0;
  int64_t bits = 0;  // of rounded weights, half of whose rows are rounded in an update
  std::string loss_scale = "none";
};

struct OptimizerRank {
  TwoLayers task;
  optim::Arena arena;
  Updater updater;

  OptimizerRank(const distributed::ProcessGroup& group, const std::string& optimizer,
                const distributed::DistOptions& dist, const Extra& extra = {})
      : arena(task.model()), updater(task, arena, group, setup(optimizer, dist, extra)) {
    at::set_num_threads(1);
  }

  void update(int64_t number) {
    updater.train_after(number);
    const auto result = updater.gradients(number, [] { return 0; });
    updater.step(result, 0.02, optim::clip_factor(result.grad_norm, 1.0), number + 1);
  }

 private:
  static UpdaterSetup setup(const std::string& optimizer, const distributed::DistOptions& dist,
                            const Extra& extra) {
    UpdaterSetup setup;
    setup.train.ema_decay = extra.ema_decay;
    setup.train.update_freq = 4;
    setup.optim = {.name = optimizer, .weight_decay = 0.1, .trust_coefficient = 0.02};
    setup.optim.gradient_noise = extra.gradient_noise;
    setup.optim.weight_noise = extra.weight_noise;
    setup.compress.prune = {
        .sparsity = extra.sparsity, .schedule = "steps", .every = 1, .increment = 0.4};
    setup.compress.quantise = {.bits = extra.bits, .noise = 0.5};
    setup.train.loss_scale.name = extra.loss_scale;
    setup.dist = dist;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    return setup;
  }
};

struct OptimizerResult {
  torch::Tensor grads, params;  // of the last update, summed over ranks; of rank 0
};

OptimizerResult train(int ranks, const std::string& optimizer, const distributed::DistOptions& dist,
                      int64_t updates, const Extra& extra = {}) {
  OptimizerResult result;
  std::vector<torch::Tensor> grads(static_cast<size_t>(ranks)), params = grads;
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    OptimizerRank rank(group, optimizer, dist, extra);
    for (int64_t number = 0; number < updates; ++number) rank.update(number);
    const auto mine = static_cast<size_t>(group.rank());
    const auto owned = rank.updater.owned();
    grads[mine] = rank.arena.grads().narrow(0, owned.begin, owned.size()).clone();
    params[mine] = rank.arena.params().clone();
  });
  for (const auto& one : params) EXPECT_TRUE(torch::equal(one, params[0])) << optimizer;
  result.params = params[0];
  result.grads = dist.strategy == "sharded" ? torch::cat(grads) : grads[0];
  return result;
}

class OptimizerStrategiesTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

  // "sgd" with it: something else than without, whatever the strategy and the number of processes.
  static void expect_bits_of_one_process(const Extra& extra) {
    const auto one = train(1, "sgd", {.deterministic = true}, 3, extra);
    EXPECT_FALSE(torch::equal(one.params, train(1, "sgd", {.deterministic = true}, 3).params));
    for (const auto& strategy : kStrategies) {
      for (int ranks = 2; ranks <= 4; ++ranks) {
        const auto got =
            train(ranks, "sgd", {.strategy = strategy, .deterministic = true}, 3, extra);
        EXPECT_TRUE(torch::equal(got.grads, one.grads)) << strategy << ", " << ranks << " ranks";
        EXPECT_TRUE(torch::equal(got.params, one.params)) << strategy << ", " << ranks << " ranks";
      }
    }
  }

 private:
  int threads_before_ = at::get_num_threads();
};

TEST_F(OptimizerStrategiesTest, LayerWiseRulesHaveTheBitsOfOneProcessWhoeverHasWhichSlice) {
  for (const std::string name : {"lamb", "lars", "larc", "novograd"}) {
    const auto one = train(1, name, {.deterministic = true}, 5);
    for (const auto& strategy : kStrategies) {
      for (int ranks = 1; ranks <= 4; ++ranks) {
        const auto got = train(ranks, name, {.strategy = strategy, .deterministic = true}, 5);
        EXPECT_TRUE(torch::equal(got.params, one.params))
            << name << ", " << strategy << ", " << ranks << " ranks";
      }
    }
  }
}

// Both matrices lie in two slices or three.
TEST_F(OptimizerStrategiesTest, MatricesThatSlicesCutHaveTheOrthogonalStepsOfOneProcess) {
  const auto one = train(1, "muon", {.deterministic = true}, 2);
  for (const auto& strategy : kStrategies) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      const auto got = train(ranks, "muon", {.strategy = strategy, .deterministic = true}, 2);
      EXPECT_TRUE(torch::equal(got.params, one.params)) << strategy << ", " << ranks << " ranks";
      if (strategy != "sharded") break;
    }
  }
}

TEST_F(OptimizerStrategiesTest, WholeTensorRulesGiveGradientsAndWeightsOfOneProcess) {
  for (const std::string name : {"lamb", "lars", "larc", "novograd", "adafactor"}) {
    const auto one = train(1, name, {}, 10);
    for (const auto& strategy : kStrategies) {
      if (name == "adafactor" && strategy == "sharded") continue;  // refused
      for (int ranks = 1; ranks <= 4; ++ranks) {
        const auto got = train(ranks, name, {.strategy = strategy, .bucket_bytes = 65536}, 10);
        EXPECT_LE(difference(got.grads, one.grads), 1e-6)
            << name << ", " << strategy << ", " << ranks << " ranks";
        EXPECT_LE(difference(got.params, one.params), 1e-6)
            << name << ", " << strategy << ", " << ranks << " ranks";
      }
    }
  }
}

/// The average of the weights as all ranks see it, which is what rank 0 saves.
torch::Tensor averaged(int ranks, const distributed::DistOptions& dist) {
  std::vector<torch::Tensor> averages(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    OptimizerRank rank(group, "sgd", dist, {.ema_decay = 0.9});
    for (int64_t number = 0; number < 4; ++number) rank.update(number);
    const auto trained = rank.arena.params().clone();
    torch::Tensor& average = averages[static_cast<size_t>(group.rank())];
    {
      const auto kept = rank.updater.use_average();
      average = rank.arena.params().clone();
    }
    EXPECT_FALSE(torch::equal(average, trained));
    EXPECT_TRUE(torch::equal(rank.arena.params(), trained));
    const auto tensors = rank.updater.gather_state();
    if (!group.is_root()) return;
    EXPECT_EQ(tensors.back().name, "ema");
    EXPECT_TRUE(torch::equal(tensors.back().values, average));
  });
  for (const auto& one : averages) EXPECT_TRUE(torch::equal(one, averages[0]));
  return averages[0];
}

TEST_F(OptimizerStrategiesTest, NoiseOnTheGradientHasTheBitsOfOneProcess) {
  expect_bits_of_one_process({.gradient_noise = 0.01});
}

TEST_F(OptimizerStrategiesTest, NoiseOnTheWeightsHasTheBitsOfOneProcess) {
  expect_bits_of_one_process({.weight_noise = 0.05});
}

// Each process finds the masks by itself, and zeros the gradient and the state of its slice.
TEST_F(OptimizerStrategiesTest, PrunedWeightsHaveTheBitsOfOneProcess) {
  expect_bits_of_one_process({.sparsity = 0.7});
  const auto pruned =
      train(2, "adam", {.strategy = "sharded"}, 3, {.ema_decay = 0.5, .sparsity = 0.7});
  const auto zeros = pruned.params.eq(0).sum().item<int64_t>();
  EXPECT_GE(zeros, (500 * 400 + 400 * 301) * 7 / 10);
  EXPECT_EQ(pruned.grads.eq(0).logical_or(pruned.params.ne(0)).all().item<bool>(), true);
}

// Which rows are rounded is the same for all processes.
TEST_F(OptimizerStrategiesTest, RoundedWeightsHaveTheBitsOfOneProcess) {
  expect_bits_of_one_process({.bits = 4});
}

// What half precision has to hold is the gradient without it.
TEST_F(OptimizerStrategiesTest, NoiseDoesNotLowerAScaleThatFollowsTheLargestGradient) {
  for (const auto& strategy : kStrategies) {
    std::vector<double> scales;
    for (const double noise : {0.0, 1.0}) {
      run_ranks(2, [&](const distributed::ProcessGroup& group) {
        OptimizerRank rank(group, "sgd", {.strategy = strategy},
                           {.gradient_noise = noise, .loss_scale = "logmax"});
        const auto result = rank.updater.gradients(0, [] { return 0; });
        rank.updater.scaled(result);
        if (group.is_root()) scales.push_back(rank.updater.scaler().scale());
      });
    }
    EXPECT_EQ(scales.at(0), scales.at(1)) << strategy;
  }
}

// The noise of a step has the deviation that it has beside a mean gradient: the sum's is larger by
// what it is to be divided by, and by the loss scale.
TEST_F(OptimizerStrategiesTest, NoiseIsAddedToTheMeanBeforeItsNormIsTaken) {
  OptimizerRank clean({}, "sgd", {}), noisy({}, "sgd", {}, {.gradient_noise = 0.3});
  for (int64_t number = 0; number < 2; ++number) {
    const auto before = clean.updater.gradients(number, [] { return 0; });
    const auto after = noisy.updater.gradients(number, [] { return 0; });
    const double tokens = after.totals.weights.front();
    const auto mean = noisy.arena.grads().to(torch::kDouble) / tokens;
    const auto noise = mean - clean.arena.grads().to(torch::kDouble) / tokens;
    const double variance =
        noise.square().sum().item<double>() / static_cast<double>(noisy.arena.num_parameters());
    EXPECT_NEAR(variance, 0.3 / std::pow(1.0 + static_cast<double>(number), 0.55), 0.005);
    EXPECT_NEAR(after.grad_norm, mean.norm().item<double>(), 1e-6 * after.grad_norm);
    EXPECT_GT(after.grad_norm, before.grad_norm);
  }
}

TEST_F(OptimizerStrategiesTest, TheAverageOfTheWeightsHasTheBitsOfOneProcess) {
  const auto one = averaged(1, {.deterministic = true});
  for (const auto& strategy : kStrategies) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      const auto got = averaged(ranks, {.strategy = strategy, .deterministic = true});
      EXPECT_TRUE(torch::equal(got, one)) << strategy << ", " << ranks << " ranks";
    }
  }
}

// The state of rank 0 is what is saved; the other ranks of a parameter server have none to step.
TEST_F(OptimizerStrategiesTest, AdafactorGoesOnFromItsStateOnAnotherNumberOfProcesses) {
  const distributed::DistOptions server{.strategy = "parameter_server", .deterministic = true};
  const auto whole = train(1, "adafactor", server, 4);
  torch::Tensor params;
  std::vector<optim::StateTensor> state;
  run_ranks(3, [&](const distributed::ProcessGroup& group) {
    OptimizerRank rank(group, "adafactor", server);
    for (int64_t number = 0; number < 2; ++number) rank.update(number);
    const auto tensors = rank.updater.gather_state();
    if (!group.is_root()) return;
    params = rank.arena.params().clone();
    for (const auto& tensor : tensors)
      state.push_back({tensor.name, tensor.values.clone(), tensor.flat});
  });
  ASSERT_EQ(state.size(), 2U);
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    OptimizerRank rank(group, "adafactor", server);
    {
      const torch::NoGradGuard no_grad;
      rank.arena.params().copy_(params);
    }
    rank.updater.scatter_state(group.is_root() ? state : std::vector<optim::StateTensor>{});
    rank.updater.seek({.epoch = 1, .index = 0});
    for (int64_t number = 2; number < 4; ++number) rank.update(number);
    EXPECT_TRUE(torch::equal(rank.arena.params(), whole.params));
  });
}

}  // namespace
}  // namespace stretto::train
