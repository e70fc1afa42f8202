#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <new>
#include <optional>

#include "tests/distributed/thread_group.h"
#include "tests/train/toy_task.h"
#include "train/forensics/forensics_report.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;

/// A rank whose machine or gradient goes wrong in one update.
class RankTask : public test::ToyTask {
 public:
  Sums loss(const Prepared& batch, const StepContext& context) override {
    const torch::Tensor weight = model().parameters().front();
    if (context.update == drift_at) {
      const torch::NoGradGuard no_grad;
      weight[0][0] += 1e-3;
    }
    if (context.update == no_memory_at && calls_then++ > 0) throw std::bad_alloc();
    Sums result = ToyTask::loss(batch, context);
    if (context.update == pull_at) {  // the loss stays, the gradient grows
      result.losses.front() = result.losses.front() + pull * (weight - weight.detach()).sum();
    }
    return result;
  }

  int64_t drift_at = -1, pull_at = -1;
  int64_t no_memory_at = -1;  // when this update's micro-batch runs again
  int calls_then = 0;
  double pull = 0;
};

// Ranks are threads; each trainer has its own task, and rank 0 writes the run folder.
class TrainerRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    root_ = fs::temp_directory_path() /
            ("stretto_ranks_" + std::to_string(::getpid()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override {
    at::set_num_threads(threads_before_);
    fs::remove_all(root_);
  }

  /// One micro-batch a rank in each update.
  TrainerSetup setup(const std::string& name, int ranks) {
    auto setup = test::toy_setup(root_ / name);
    setup.train.update_freq = ranks;
    setup.handle_signals = false;
    return setup;
  }

  /// What each rank threw. The tasks are made by the caller: their weights come from one generator.
  /// Other ranks than 0 are on hosts that do not see the run folder.
  std::vector<std::optional<Error>> run(const TrainerSetup& setup,
                                        std::vector<RankTask>& tasks) const {
    std::vector<std::optional<Error>> errors(tasks.size());
    stretto::test::run_ranks(static_cast<int>(tasks.size()),
                             [&](const distributed::ProcessGroup& group) {
                               const auto rank = static_cast<size_t>(group.rank());
                               auto own = setup;
                               if (rank > 0)
                                 own.run_directory = root_ / ("host" + std::to_string(rank));
                               try {
                                 EXPECT_EQ(Trainer(tasks[rank], own, group).run(), ExitCode::kOk);
                               } catch (const Error& error) {
                                 errors[rank] = error;
                               }
                             });
    return errors;
  }

  fs::path report(const std::string& run, const std::string& name) const {
    return root_ / run / "forensics" / name;
  }

  fs::path root_;

 private:
  int threads_before_ = at::get_num_threads();
};

TEST_F(TrainerRanksTest, ReplicasThatAgreeTrainToTheEnd) {
  auto checked = setup("run", 3);
  checked.dist.check_every = 1;
  std::vector<RankTask> tasks(3);
  for (const auto& error : run(checked, tasks)) EXPECT_FALSE(error) << error->what();
  EXPECT_EQ(test::events(checked, "train").size(), 12U);
}

TEST_F(TrainerRanksTest, TheRankWhoseWeightsDifferIsNamedOnAllRanks) {
  for (const size_t odd : {0, 1, 2}) {
    auto checked = setup("odd" + std::to_string(odd), 3);
    checked.dist.check_every = 1;
    std::vector<RankTask> tasks(3);
    tasks[odd].drift_at = 4;
    for (const auto& error : run(checked, tasks)) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ExitCode::kNumeric);
      EXPECT_NE(error->message().find("step 5: gradient norm or weights of rank " +
                                      std::to_string(odd) + " differ"),
                std::string::npos)
          << error->message();
    }
  }
}

TEST_F(TrainerRanksTest, TwoRanksThatDifferHaveNoMajority) {
  auto checked = setup("run", 2);
  checked.dist.check_every = 1;
  std::vector<RankTask> tasks(2);
  tasks[1].drift_at = 4;
  for (const auto& error : run(checked, tasks)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ExitCode::kNumeric);
    EXPECT_NE(error->message().find("there is no majority"), std::string::npos) << error->message();
  }
}

TEST_F(TrainerRanksTest, ReplicasAreComparedOnlyEverySoManyUpdates) {
  for (const int64_t every : {4, 0}) {
    auto checked = setup("every" + std::to_string(every), 3);
    checked.dist.check_every = every;
    std::vector<RankTask> tasks(3);
    tasks[1].drift_at = 4;
    for (const auto& error : run(checked, tasks)) {
      ASSERT_EQ(error.has_value(), every > 0);
      if (!error) continue;
      EXPECT_TRUE(error->message().starts_with("step 8:")) << error->message();
    }
  }
}

TEST_F(TrainerRanksTest, ReplicasAreComparedBeforeEachCheckpoint) {
  auto checked = setup("saves", 3);
  checked.dist.check_every = 100;
  checked.train.save_every = 3;
  std::vector<RankTask> tasks(3);
  tasks[0].drift_at = 4;  // the rank that writes
  for (const auto& error : run(checked, tasks)) {
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->message().starts_with("step 6: gradient norm or weights of rank 0 differ"))
        << error->message();
  }
  EXPECT_TRUE(fs::exists(checked.run_directory / "checkpoints" / "step_00000003"));
  EXPECT_FALSE(fs::exists(checked.run_directory / "checkpoints" / "step_00000006"));
}

struct Sum {
  const char *name, *strategy, *compress;
  double pull;
};

TEST_F(TrainerRanksTest, ASumThatAloneIsNotFiniteIsReportedByRank0) {
  for (const Sum& sum :
       {Sum{"all_reduce", "all_reduce", "none", 2e38}, Sum{"sharded", "sharded", "none", 2e38},
        Sum{"server", "parameter_server", "none", 2e38}, Sum{"wire", "all_reduce", "fp16", 1e6}}) {
    auto stopping = setup(sum.name, 2);
    stopping.dist.strategy = sum.strategy;
    stopping.dist.compress = sum.compress;
    stopping.train.forensics = {.policy = "stop", .stop_after = 1};
    std::vector<RankTask> tasks(2);
    for (auto& task : tasks) {
      task.pull_at = 4;
      task.pull = sum.pull;
    }
    for (const auto& error : run(stopping, tasks)) {
      ASSERT_TRUE(error) << sum.name;
      EXPECT_EQ(error->code(), ExitCode::kNumeric);
      EXPECT_NE(error->advice().find("step_00000005.json"), std::string::npos) << error->advice();
    }
    EXPECT_FALSE(fs::exists(report(sum.name, "step_00000005.rank1.json")));
    ASSERT_TRUE(fs::exists(report(sum.name, "step_00000005.json"))) << sum.name;
    const auto first = read_report(report(sum.name, "step_00000005.json")).report.first;
    EXPECT_EQ(first.kind, TensorKind::kSum);
    EXPECT_TRUE(first.name.starts_with("weight over 2 processes")) << first.name;
    EXPECT_EQ(first.name.ends_with("sent as fp16 (dist.compress)"),
              std::string(sum.compress) == "fp16")
        << first.name;
  }
}

TEST_F(TrainerRanksTest, Rank0WritesTheReportOfTheRankThatFoundSomethingAndAllNameIt) {
  auto stopping = setup("run", 3);
  stopping.train.forensics = {.policy = "stop", .stop_after = 1};
  std::vector<RankTask> tasks(3);
  tasks[1].nan_at = 4;
  for (const auto& error : run(stopping, tasks)) {
    ASSERT_TRUE(error);
    EXPECT_NE(error->advice().find("step_00000005.rank1.json"), std::string::npos)
        << error->advice();
  }
  EXPECT_TRUE(fs::exists(report("run", "step_00000005.rank1.json")));
  EXPECT_FALSE(fs::exists(report("run", "step_00000005.json")));
  EXPECT_FALSE(fs::exists(report("run", "step_00000005.rank2.json")));
  EXPECT_FALSE(fs::exists(root_ / "host1"));
  const auto saved = read_report(report("run", "step_00000005.rank1.json"));
  EXPECT_EQ(saved.record.rank, 1);
  EXPECT_EQ(saved.record.world_size, 3);
  EXPECT_EQ(saved.report.first.name, "loss");
  EXPECT_EQ(saved.record.positions, (std::vector<data::Position>{{1, 4}}));  // 8 an epoch: 3, 3, 2
  EXPECT_TRUE(fs::exists(saved.weights));
}

TEST_F(TrainerRanksTest, AllThatFindSomethingHaveAReportAndShareTheWeights) {
  auto stopping = setup("run", 3);
  stopping.train.forensics = {.policy = "stop", .stop_after = 1};
  stopping.identity.tokenizer = {{"joint.model", "abcd"}};
  std::vector<RankTask> tasks(3);
  for (const size_t rank : {0, 2}) tasks[rank].nan_at = 4;
  for (const auto& error : run(stopping, tasks)) {
    ASSERT_TRUE(error);
    EXPECT_NE(error->advice().find("step_00000005.json"), std::string::npos) << error->advice();
  }
  std::vector<std::string> names;
  for (const auto& path : reports_beside(report("run", "step_00000005.json"))) {
    names.push_back(path.filename().string());
    EXPECT_EQ(read_report(path).weights.filename(), "step_00000005.safetensors");
    EXPECT_EQ(read_report(path).record.tokenizer, stopping.identity.tokenizer);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"step_00000005.json", "step_00000005.rank2.json"}));
  const fs::directory_iterator files(root_ / "run" / "forensics");
  EXPECT_EQ(std::distance(begin(files), end(files)), 3);
}

TEST_F(TrainerRanksTest, ARankWithoutMemoryToLookIsSkippedAndNobodyWaitsForIt) {
  for (const size_t poor : {0, 1, 2}) {
    const std::string name = "poor" + std::to_string(poor);
    auto skipping = setup(name, 3);
    std::vector<RankTask> tasks(3);
    tasks[1].nan_at = 4;
    tasks[poor].no_memory_at = 4;
    ::testing::internal::CaptureStderr();
    const auto errors = run(skipping, tasks);
    const std::string said = ::testing::internal::GetCapturedStderr();
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
    EXPECT_EQ(test::events(skipping, "train").size(), 13U) << "12 updates and one that failed";
    EXPECT_NE(said.find("could not be looked for: out of memory"), std::string::npos) << said;
    // Rank 1 would have found it; that the others found nothing proves nothing.
    EXPECT_EQ(fs::exists(report(name, "step_00000005.rank1.json")), poor != 1);
    EXPECT_FALSE(fs::exists(report(name, "step_00000005.json")));
  }
}

TEST_F(TrainerRanksTest, AReportOfARankWithOtherWeightsSaysSo) {
  auto skipping = setup("run", 2);
  skipping.dist.check_every = 0;
  std::vector<RankTask> tasks(2);
  tasks[1].nan_at = tasks[1].drift_at = 4;
  ::testing::internal::CaptureStderr();
  const auto errors = run(skipping, tasks);
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  EXPECT_NE(said.find("rank 1 has other weights than rank 0"), std::string::npos) << said;
}

TEST_F(TrainerRanksTest, WhatDoesNotComeAgainIsReportedByRank0AsSuch) {
  const auto skipping = setup("run", 2);
  std::vector<RankTask> tasks(2);
  tasks[1].nan_at = 4;
  tasks[1].nan_times = 1;
  for (const auto& error : run(skipping, tasks)) EXPECT_FALSE(error) << error->what();
  ASSERT_TRUE(fs::exists(report("run", "step_00000005.json")));
  EXPECT_FALSE(read_report(report("run", "step_00000005.json")).report.found());
  EXPECT_FALSE(fs::exists(report("run", "step_00000005.rank1.json")));
}

}  // namespace
}  // namespace stretto::train
