// LazyAdam with every way in which processes share a step: rows that any of them looked up.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

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

constexpr int64_t kRows = 1000, kColumns = 100;
constexpr int64_t kSharedRow = 655;  // the border of slices at element 65,536 divides it

class EightBatches : public data::BatchSource {
 public:
  int64_t num_batches() const override { return 8; }
  data::Batch load(int64_t, int64_t index) const override { return test::toy_batch(index); }
};

/// The rows that a sample looks up.
std::vector<int64_t> rows_of(int64_t sample) {
  return {(sample * 37 + 11) % kRows, (sample * 91 + 500) % kRows,
          sample % 3 == 0 ? kSharedRow : (sample * 7) % kRows};
}

/// Least squares on rows of a table, behind one linear layer.
class LookedUp : public stretto::test::BareTask {
 public:
  LookedUp() : net_(std::make_shared<Net>()) {
    const torch::NoGradGuard no_grad;
    RandomStream random(1);
    for (torch::Tensor& parameter : net_->parameters()) {
      std::generate_n(parameter.data_ptr<float>(), parameter.numel(),
                      [&] { return static_cast<float>(0.1 * random.normal()); });
    }
  }
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    torch::Tensor loss;
    for (const int64_t sample : batch.sample_ids) {
      const auto ids = torch::tensor(rows_of(sample), torch::kLong);
      const auto y = net_->output->forward(net_->embedding->forward(ids));
      const auto term = (y - 0.1 * static_cast<double>(sample + 1)).square().sum();
      loss = loss.defined() ? loss + term : term;
    }
    return sums(loss, batch);
  }

 private:
  struct Net : torch::nn::Module {
    torch::nn::Embedding embedding =
        register_module("embedding", torch::nn::Embedding(kRows, kColumns));
    torch::nn::Linear output = register_module("output", torch::nn::Linear(kColumns, 3));
  };
  std::shared_ptr<Net> net_;
  EightBatches source_;
};

struct Job {
  distributed::DistOptions dist;
  std::string optimizer = "lazy_adam";
  double loss_scale = 1;
};

struct Rank {
  LookedUp task;
  optim::Arena arena;
  Updater updater;

  Rank(const distributed::ProcessGroup& group, const Job& job)
      : arena(task.model()), updater(task, arena, group, setup(job)) {
    at::set_num_threads(1);
  }

  void update(int64_t number) {
    const auto result = updater.gradients(number, [] { return 0; });
    updater.step(result, 0.01, optim::clip_factor(result.grad_norm, 1.0), number + 1);
  }

 private:
  static UpdaterSetup setup(const Job& job) {
    UpdaterSetup setup;
    setup.train.update_freq = 4;
    if (job.loss_scale != 1) {
      setup.train.loss_scale = {.name = "static", .init = job.loss_scale};
    }
    setup.optim = {.name = job.optimizer, .weight_decay = 0.01};
    setup.dist = job.dist;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    return setup;
  }
};

/// Rank 0's weights, which all ranks have.
torch::Tensor train(int ranks, const Job& job, int64_t updates) {
  std::vector<torch::Tensor> params(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, job);
    for (int64_t number = 0; number < updates; ++number) rank.update(number);
    params[static_cast<size_t>(group.rank())] = rank.arena.params().clone();
  });
  for (const auto& one : params) EXPECT_TRUE(torch::equal(one, params[0]));
  return params[0];
}

torch::Tensor table_of(const torch::Tensor& params) {
  return params.narrow(0, 0, kRows * kColumns).view({kRows, kColumns});
}

class LazyAdamStrategiesTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

 private:
  int threads_before_ = at::get_num_threads();
};

TEST_F(LazyAdamStrategiesTest, ABorderOfSlicesDividesTheSharedRow) {
  LookedUp task;
  const optim::Arena arena(task.model());
  ASSERT_EQ(arena.slots()[0].name, "embedding.weight");
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    const Rank rank(group, {.dist = {.strategy = "sharded"}});
    const auto owned = rank.updater.owned();
    const int64_t border = group.is_root() ? owned.end : owned.begin;
    EXPECT_EQ(border / kColumns, kSharedRow);
    EXPECT_NE(border % kColumns, 0);
  });
}

TEST_F(LazyAdamStrategiesTest, AnyNumberOfProcessesHasTheBitsOfOne) {
  const auto one = train(1, {.dist = {.deterministic = true}}, 5);
  for (const auto& strategy : kStrategies) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      const auto got = train(ranks, {.dist = {.strategy = strategy, .deterministic = true}}, 5);
      EXPECT_TRUE(torch::equal(got, one)) << strategy << ", " << ranks << " ranks";
    }
  }
}

TEST_F(LazyAdamStrategiesTest, WithoutAnOrderOfSumsTheWeightsAreTheSameWithinRounding) {
  const auto one = train(1, {}, 6);
  for (const auto& strategy : kStrategies) {
    for (int ranks = 2; ranks <= 3; ++ranks) {
      const auto got = train(ranks, {.dist = {.strategy = strategy, .bucket_bytes = 65536}}, 6);
      EXPECT_LE(difference(got, one), 1e-5) << strategy << ", " << ranks << " ranks";
    }
  }
}

// The first update has the samples 0 to 7, the second 8 to 15, and then they come again.
TEST_F(LazyAdamStrategiesTest, RowsThatOneProcessLookedUpAreSteppedOnAllAndNoOthers) {
  const auto first = table_of(train(2, {}, 0)), second = table_of(train(2, {}, 1));
  std::vector<bool> used(kRows);
  for (int64_t sample = 0; sample < 8; ++sample) {
    for (const int64_t row : rows_of(sample)) used[static_cast<size_t>(row)] = true;
  }
  for (const auto& strategy : kStrategies) {
    const auto got = table_of(train(2, {.dist = {.strategy = strategy}}, 1));
    for (int64_t row = 0; row < kRows; ++row) {
      EXPECT_EQ(!torch::equal(got[row], first[row]), used[static_cast<size_t>(row)])
          << strategy << ", row " << row;
    }
  }
}

TEST_F(LazyAdamStrategiesTest, ALossScaleOfAPowerOfTwoChangesNoBit) {
  const auto plain = train(1, {}, 4), scaled = train(1, {.loss_scale = 1024}, 4);
  EXPECT_TRUE(torch::equal(plain, scaled));
}

TEST_F(LazyAdamStrategiesTest, GoesOnOnAnotherNumberOfProcesses) {
  const distributed::DistOptions sharded{.strategy = "sharded", .deterministic = true};
  const auto whole = train(1, {.dist = sharded}, 4);
  torch::Tensor params;
  std::vector<optim::StateTensor> state;
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, {.dist = sharded});
    for (int64_t number = 0; number < 2; ++number) rank.update(number);
    const auto tensors = rank.updater.gather_state();
    if (!group.is_root()) return;
    params = rank.arena.params().clone();
    for (const auto& tensor : tensors) {
      state.push_back({tensor.name, tensor.values.clone(), tensor.flat});
    }
  });
  run_ranks(3, [&](const distributed::ProcessGroup& group) {
    Rank rank(group, {.dist = sharded});
    {
      const torch::NoGradGuard no_grad;
      rank.arena.params().copy_(params);
    }
    rank.updater.scatter_state(group.is_root() ? state : std::vector<optim::StateTensor>{});
    rank.updater.seek({.epoch = 1, .index = 0});
    for (int64_t number = 2; number < 4; ++number) rank.update(number);
    EXPECT_TRUE(torch::equal(rank.arena.params(), whole));
  });
}

}  // namespace
}  // namespace stretto::train
