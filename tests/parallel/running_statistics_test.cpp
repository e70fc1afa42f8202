#include "parallel/running_statistics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "nn/batch_norm.h"
#include "nn/linear.h"
#include "tests/distributed/thread_group.h"
#include "tests/kernels/gradcheck.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::parallel {
namespace {

using stretto::test::run_ranks;
using testing::noise;

/// Two norms, the second of another momentum and called twice.
struct NormNet : torch::nn::Module {
  NormNet() {
    const nn::Init init(1, at::kCPU);
    first = register_module("first", nn::BatchNorm(init.child("first"), 1, quarter()));
    second = register_module("second", nn::BatchNorm(init.child("second"), 1));
  }
  static nn::BatchNormOptions quarter() { return {.momentum = 0.25}; }
  void run(const at::Tensor& x) {
    first->forward(x);
    second->forward(x);
    second->forward(x + 2);
  }
  nn::BatchNorm first{nullptr}, second{nullptr};
};

/// Mean 1 + k, unbiased variance 8.
at::Tensor batch(int k) {
  return torch::tensor({-1.f, 3.f}).view({2, 1}) + k;
}

TEST(RunningStatistics, MoveOnceForEachMicroBatchOfTheUpdate) {
  NormNet net;
  RunningStatistics statistics(net, {}, {});
  // running = 3/4 running + 1/4 (1 + k) for k = 0, 1, 2; then of a second update for k = 3.
  const double means[] = {1.265625, 1.94921875};
  const double vars[] = {5.046875, 5.78515625};
  for (const int update : {0, 1}) {
    const std::vector<int> parts = update == 0 ? std::vector{0, 1, 2} : std::vector{3};
    statistics.begin(static_cast<int64_t>(parts.size()));
    for (size_t part = 0; part < parts.size(); ++part) {
      statistics.before_micro_batch(static_cast<int64_t>(part));
      net.run(batch(parts[part]));
    }
    statistics.end();
    EXPECT_FLOAT_EQ(net.first->running_mean.item<float>(), update == 0 ? 0 : means[0]);
    statistics.move();
    EXPECT_FLOAT_EQ(net.first->running_mean.item<float>(), means[update]);
    EXPECT_FLOAT_EQ(net.first->running_var.item<float>(), vars[update]);
  }
}

TEST(RunningStatistics, ALayerCalledTwiceMovesOnceTowardsTheMean) {
  NormNet net;
  RunningStatistics statistics(net, {}, {});
  statistics.begin(1);
  statistics.before_micro_batch(0);
  net.run(batch(0));
  statistics.end();
  net.run(batch(100));  // after the update, of nothing
  statistics.move();
  EXPECT_FLOAT_EQ(net.second->running_mean.item<float>(), 0.2F) << "a tenth of (1 + 3) / 2";
  EXPECT_FLOAT_EQ(net.second->running_var.item<float>(), 1.7F);
}

TEST(RunningStatistics, AnUpdateThatBeginsAgainLeavesNothingBehind) {
  NormNet net, twin;
  RunningStatistics statistics(net, {}, {}), of_twin(twin, {}, {});
  statistics.begin(1);
  statistics.before_micro_batch(0);
  net.run(batch(50));
  for (auto* one : {&statistics, &of_twin}) {
    one->begin(1);
    one->before_micro_batch(0);
    (one == &statistics ? net : twin).run(batch(1));
    one->end();
    one->move();
  }
  EXPECT_TRUE(at::equal(net.first->running_mean, twin.first->running_mean));
  EXPECT_TRUE(at::equal(net.second->running_var, twin.second->running_var));
}

TEST(RunningStatistics, ALayerThatAMicroBatchDoesNotCallStaysWhereItIs) {
  NormNet net;
  RunningStatistics statistics(net, {}, {});
  statistics.begin(1);
  statistics.before_micro_batch(0);
  net.first->forward(batch(0));
  statistics.end();
  statistics.move();
  EXPECT_FLOAT_EQ(net.first->running_mean.item<float>(), 0.25F);
  EXPECT_EQ(net.second->running_mean.item<float>(), 0);
  EXPECT_EQ(net.second->running_var.item<float>(), 1);
}

TEST(RunningStatistics, TheModelMovesThemItselfWhenTheyAreGone) {
  NormNet net;
  { const RunningStatistics statistics(net, {}, {}); }
  net.run(batch(0));
  EXPECT_FLOAT_EQ(net.first->running_mean.item<float>(), 0.25F);
}

/// Running statistics of rank 0 after updates of 5 micro-batches of unequal size by `ranks`.
at::Tensor after_updates(int ranks, const RunningStatistics::Setup& setup) {
  std::vector<NormNet> nets(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    NormNet& net = nets[static_cast<size_t>(group.rank())];
    RunningStatistics statistics(net, group, setup);
    for (uint64_t update = 0; update < 3; ++update) {
      statistics.begin(5);
      for (int64_t j = group.rank(); j < 5; j += ranks) {
        statistics.before_micro_batch(j / ranks);
        net.run(3 * noise({4 + j, 1}, 10 * update + static_cast<uint64_t>(j)) + 1);
      }
      statistics.end();
      statistics.move();
    }
  });
  std::vector<at::Tensor> all;
  for (const NormNet& net : nets) {
    all.push_back(at::cat({net.first->running_mean, net.first->running_var,
                           net.second->running_mean, net.second->running_var}));
    EXPECT_TRUE(at::equal(all.back(), all.front())) << "the same on all ranks";
  }
  return all.front();
}

TEST(RunningStatistics, AreTheSameForAnyNumberOfProcesses) {
  const at::Tensor one = after_updates(1, {}), ordered = after_updates(1, {.ordered = true});
  EXPECT_GT(one.abs().min().item<double>(), 1e-3);
  for (const int ranks : {2, 3, 4}) {
    EXPECT_TRUE(at::allclose(after_updates(ranks, {}), one, 1e-6)) << ranks;
    EXPECT_TRUE(at::equal(after_updates(ranks, {.ordered = true}), ordered)) << ranks;
  }
}

TEST(RunningStatistics, SynchronisedRanksNormaliseTogetherAndTheRestAlone) {
  // Five micro-batches of two ranks: two joined batches of two, and one alone.
  std::vector<NormNet> nets(2);
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    NormNet& net = nets[static_cast<size_t>(group.rank())];
    RunningStatistics statistics(net, group, {.synchronised = true});
    statistics.begin(5);
    for (int64_t j = group.rank(); j < 5; j += 2) {
      statistics.before_micro_batch(j / 2);
      EXPECT_EQ(statistics.is_synchronised(), j < 4);
      net.first->forward(noise({3 + j, 1}, static_cast<uint64_t>(j)));
    }
    statistics.end();
    EXPECT_FALSE(statistics.is_synchronised());
    statistics.move();
  });
  NormNet alone;
  RunningStatistics statistics(alone, {}, {});
  statistics.begin(3);
  const auto rows = [](int64_t j) { return noise({3 + j, 1}, static_cast<uint64_t>(j)); };
  const std::vector<at::Tensor> joined{at::cat({rows(0), rows(1)}), at::cat({rows(2), rows(3)}),
                                       rows(4)};
  for (size_t round = 0; round < joined.size(); ++round) {
    statistics.before_micro_batch(static_cast<int64_t>(round));
    alone.first->forward(joined[round]);
  }
  statistics.end();
  statistics.move();
  for (const NormNet& net : nets) {
    EXPECT_TRUE(at::allclose(net.first->running_mean, alone.first->running_mean, 1e-6));
    EXPECT_TRUE(at::allclose(net.first->running_var, alone.first->running_var, 1e-6));
  }
}

/// Least squares behind a batch norm.
class NormTask : public train::test::ToyTask {
 public:
  NormTask() {
    const nn::Init init(4, at::kCPU);
    norm_ = net_.register_module("norm", nn::BatchNorm(init.child("norm"), 4));
    linear_ = net_.register_module("linear", nn::Linear(init.child("linear"), 4, 3));
  }
  torch::nn::Module& model() override { return net_; }
  train::Sums loss(const train::Prepared& prepared, const train::StepContext& context) override {
    const data::Batch& batch = prepared;
    std::vector<at::Tensor> xs, ys;
    for (const int64_t id : batch.sample_ids) {
      xs.push_back(noise({2, 4}, static_cast<uint64_t>(id) + 7));
      ys.push_back(noise({2, 3}, static_cast<uint64_t>(id) + 70));
    }
    if (context.update == out_of_memory_at) throw std::bad_alloc();
    at::Tensor x = at::cat(xs);
    if (context.update == nan_at) x = x * std::numeric_limits<float>::quiet_NaN();
    const at::Tensor sum = (linear_->forward(norm_->forward(x)) - at::cat(ys)).square().sum();
    return train::test::toy_sums(sum, batch);
  }
  at::Tensor moments() const { return at::cat({norm_->running_mean, norm_->running_var}); }

  int64_t out_of_memory_at = -1;

 private:
  torch::nn::Module net_;
  nn::BatchNorm norm_{nullptr};
  nn::Linear linear_{nullptr};
};

class BatchNormTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override {
    at::set_num_threads(threads_before_);
    std::filesystem::remove_all(root_);
  }

  struct Run {
    std::vector<double> losses;
    at::Tensor statistics;
    std::string weights;
  };

  train::TrainerSetup setup(const std::string& name) {
    auto setup = train::test::toy_setup(root_ / name);
    setup.train.update_freq = 4;
    setup.handle_signals = false;
    return setup;
  }

  static Run run(const train::TrainerSetup& setup, int ranks, std::vector<NormTask>& tasks) {
    run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
      train::Trainer(tasks[static_cast<size_t>(group.rank())], setup, group).run();
    });
    Run result{.losses = {}, .statistics = tasks[0].moments(), .weights = {}};
    for (const auto& task : tasks) EXPECT_TRUE(at::equal(task.moments(), result.statistics));
    for (const auto& event : train::test::events(setup, "train"))
      result.losses.push_back(*event.loss);
    result.weights = train::test::final_hash(setup);
    return result;
  }
  static Run run(const train::TrainerSetup& setup, int ranks) {
    std::vector<NormTask> tasks(static_cast<size_t>(ranks));
    return run(setup, ranks, tasks);
  }

  std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("stretto_batch_norm_" + std::to_string(::getpid()));

 private:
  int threads_before_ = at::get_num_threads();
};

TEST_F(BatchNormTrainingTest, StatisticsOfMicroBatchesGiveOneRunForAnyNumberOfProcesses) {
  auto plain = setup("one"), ordered = setup("ordered1");
  ordered.dist.deterministic = true;
  const Run one = run(plain, 1), bits = run(ordered, 1);
  for (const int ranks : {2, 3, 4}) {
    const Run several = run(setup("many" + std::to_string(ranks)), ranks);
    ASSERT_EQ(several.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(several.losses[i] / one.losses[i], 1, 1e-5) << ranks << " ranks, update " << i;
    }
    EXPECT_TRUE(at::allclose(several.statistics, one.statistics, 1e-5));
    ordered = setup("ordered" + std::to_string(ranks));
    ordered.dist.deterministic = true;
    const Run same = run(ordered, ranks);
    EXPECT_EQ(same.losses, bits.losses);
    EXPECT_EQ(same.weights, bits.weights);
    EXPECT_TRUE(at::equal(same.statistics, bits.statistics));
  }
}

TEST_F(BatchNormTrainingTest, SynchronisedOverAllRanksIsAnotherProblem) {
  auto all = setup("all"), alone = setup("alone");
  all.dist.batch_norm = alone.dist.batch_norm = "all";
  const Run one = run(setup("one"), 1), two = run(all, 2);
  EXPECT_GT(std::abs(two.losses[0] / one.losses[0] - 1), 1e-3);
  EXPECT_LT(two.losses.back(), two.losses.front());
  EXPECT_EQ(run(alone, 1).losses, one.losses) << "one process has nobody to ask";
}

TEST_F(BatchNormTrainingTest, ASkippedUpdateDoesNotMoveTheStatistics) {
  for (const int ranks : {1, 2}) {
    auto skips = setup("skips" + std::to_string(ranks));
    std::vector<NormTask> tasks(static_cast<size_t>(ranks));
    for (auto& task : tasks) task.nan_at = 5;
    const Run result = run(skips, ranks, tasks);
    EXPECT_EQ(result.losses.size(), 13U) << "12 updates and one that failed";
    EXPECT_TRUE(at::isfinite(result.statistics).all().item<bool>());
  }
}

TEST_F(BatchNormTrainingTest, WithoutMemoryForAMicroBatchItStopsInsteadOfSplitting) {
  for (const std::string whose : {"worker", "all"}) {
    auto short_of = setup("memory_" + whose);
    short_of.dist.batch_norm = whose;
    std::vector<NormTask> tasks(2);
    for (auto& task : tasks) task.out_of_memory_at = 2;
    try {
      run(short_of, 2, tasks);
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
      EXPECT_NE(error.message().find("batch norm would make another update of it"),
                std::string::npos)
          << error.message();
    }
  }
}

TEST_F(BatchNormTrainingTest, ResumesWithTheStatisticsOnAnotherNumberOfProcesses) {
  const Run whole = run(setup("whole"), 1);
  auto half = setup("half");
  half.train.max_steps = 6;
  run(half, 1);
  half.train.max_steps = 12;
  const Run rest = run(half, 2);
  EXPECT_TRUE(at::allclose(rest.statistics, whole.statistics, 1e-5));
  EXPECT_NEAR(rest.losses.back() / whole.losses.back(), 1, 1e-5);
}

}  // namespace
}  // namespace stretto::parallel
