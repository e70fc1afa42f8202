// State that a model takes from one update to the next (parallel/carry.h), as the training loop
// commits, saves and restores it.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/recurrent_task.h"
#include "tests/train/strategies.h"
#include "tests/train/toy_task.h"
#include "train/forensics/forensics_report.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using stretto::test::run_ranks;
using stretto::testing::failure;
using test::events, test::kHidden, test::kLanes, test::kStretchesOfEpoch, test::kStrategies,
    test::RecurrentTask;

using Reads = std::vector<std::pair<int64_t, int64_t>>;
/// "optimizer:carry/h" -> bytes.
using Tensors = std::map<std::string, std::string>;
/// One task a rank: their weights come from one generator, so that they are made by one thread.
using Tasks = std::deque<RecurrentTask>;

constexpr int64_t kGroups = 6;

class CarryTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

  /// Twelve updates of six micro-batches, each a stretch of all lanes; a checkpoint after every
  /// fourth.
  TrainerSetup setup(const std::string& name) const {
    auto setup = test::toy_setup(root_ / name);
    setup.train.update_freq = kGroups;
    setup.dist.deterministic = true;
    setup.handle_signals = false;
    return setup;
  }
  /// Weights that never move.
  TrainerSetup standing_setup(const std::string& name) const {
    auto setup = this->setup(name);
    setup.optim.lr = 0;
    return setup;
  }

  static void run(const TrainerSetup& setup, Tasks& tasks) {
    run_ranks(static_cast<int>(tasks.size()), [&](const distributed::ProcessGroup& group) {
      EXPECT_EQ(Trainer(tasks[static_cast<size_t>(group.rank())], setup, group).run(),
                ExitCode::kOk);
    });
  }
  static void run(const TrainerSetup& setup, size_t ranks = 1) {
    Tasks tasks(ranks);
    run(setup, tasks);
  }
  static void run(const TrainerSetup& setup, RecurrentTask& task) {
    EXPECT_EQ(Trainer(task, setup).run(), ExitCode::kOk);
  }
  /// Weights, the optimizer's state and that of the lanes in the newest checkpoint.
  static Tensors saved(const TrainerSetup& setup) {
    const store::CheckpointStore checkpoints(setup.run_directory);
    const auto loaded =
        store::CheckpointStore::load(checkpoints.path_of(checkpoints.steps().back()));
    Tensors tensors;
    for (const auto& [stem, file] : loaded.files) {
      for (const auto& tensor : file.tensors()) {
        tensors[stem + ":" + tensor.name] = std::string(tensor.bytes);
      }
    }
    return tensors;
  }
  /// [lanes, …] of a checkpoint, in fp32.
  static torch::Tensor state(const TrainerSetup& setup, const std::string& name) {
    std::string bytes = saved(setup).at("optimizer:carry/" + name);
    const auto numel = static_cast<int64_t>(bytes.size() / sizeof(float));
    return torch::from_blob(bytes.data(), {kLanes, numel / kLanes}).clone();
  }
  /// The state of each lane after these stretches, read one lane after the other with the first
  /// weights.
  static torch::Tensor read_alone(const std::vector<int64_t>& stretches) {
    const torch::NoGradGuard no_grad;
    RecurrentTask task(/*groups=*/kLanes);
    std::vector<torch::Tensor> lanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      torch::Tensor h = torch::zeros({1, kHidden});
      for (const int64_t i : stretches) {
        const int64_t index = i % kStretchesOfEpoch * kLanes + lane;
        h = task.read(task.train_batches().load(i / kStretchesOfEpoch, index), h).second;
      }
      lanes.push_back(h);
    }
    return torch::cat(lanes);
  }
  static Reads reads(int64_t updates) {
    Reads reads;
    for (int64_t i = 0; i < updates; ++i) reads.emplace_back(i, i);
    return reads;
  }

  stretto::testing::TempDir root_;

 private:
  int threads_before_ = at::get_num_threads();
};

// One process.

TEST_F(CarryTest, EachUpdateReadsWhatTheOneBeforeLeft) {
  RecurrentTask task;
  const auto setup = this->setup("run");
  run(setup, task);
  EXPECT_EQ(task.reads, reads(12));
  EXPECT_TRUE(state(setup, "stretches").eq(12).all().item<bool>());
}

TEST_F(CarryTest, WithStandingWeightsALaneEndsWhereItsWholeTextLeads) {
  const auto setup = standing_setup("run");
  run(setup);
  const auto alone = read_alone({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_TRUE(torch::allclose(state(setup, "h"), alone, 1e-5, 1e-6));
  EXPECT_GT(alone.abs().max().item<double>(), 0.1);
}

TEST_F(CarryTest, ASkippedUpdateLeavesTheState) {
  const auto setup = standing_setup("run");
  RecurrentTask task;
  task.nan_at = 4;
  run(setup, task);
  // Update 4 runs again for its report, and update 5 reads what it read.
  Reads expected{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {4, 4}, {5, 4}};
  for (int64_t i = 6; i < 13; ++i) expected.emplace_back(i, i - 1);
  EXPECT_EQ(task.reads, expected);
  const auto alone = read_alone({0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_TRUE(torch::allclose(state(setup, "h"), alone, 1e-5, 1e-6));
}

TEST_F(CarryTest, ALossScaleThatOverflowsLeavesTheState) {
  auto setup = this->setup("run");
  setup.train.loss_scale = {.name = "fairseq", .init = 256, .window = 1000};
  RecurrentTask task;
  task.overflow_at = 4;
  run(setup, task);
  Reads expected{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 4}};
  for (int64_t i = 6; i < 13; ++i) expected.emplace_back(i, i - 1);
  EXPECT_EQ(task.reads, expected);
}

TEST_F(CarryTest, ARollbackGoesBackToTheStateOfTheCheckpoint) {
  auto setup = this->setup("run");
  setup.train.forensics = {.policy = "rollback", .stop_after = 1};
  RecurrentTask task;
  task.nan_at = 6;
  task.nan_times = 2;  // in training and when it is examined
  run(setup, task);
  Reads expected = reads(7);
  expected.emplace_back(6, 6);
  for (int64_t i = 4; i < 12; ++i) expected.emplace_back(i, i);
  EXPECT_EQ(task.reads, expected);
  EXPECT_TRUE(state(setup, "stretches").eq(12).all().item<bool>());
}

TEST_F(CarryTest, ValidationsLeaveTheState) {
  const auto rare = setup("rare");
  auto often = setup("often");
  often.eval.every = 1;
  run(rare);
  run(often);
  EXPECT_EQ(events(often, "valid").size(), 12U);
  EXPECT_EQ(saved(often), saved(rare));
}

TEST_F(CarryTest, AKilledRunEndsWithTheSameBits) {
  const auto whole = setup("whole");
  run(whole);
  for (const int64_t killed_at : {2, 4, 7, 11}) {
    const auto parts = setup("killed" + std::to_string(killed_at));
    RecurrentTask first, second;
    first.killed_at = killed_at;
    EXPECT_THROW(Trainer(first, parts).run(), test::Killed);
    run(parts, second);
    const int64_t checkpoint = killed_at / 4 * 4;
    EXPECT_EQ(second.reads.front(), Reads::value_type(checkpoint, checkpoint)) << killed_at;
    EXPECT_EQ(saved(parts), saved(whole)) << killed_at;
    EXPECT_EQ(test::final_hash(parts), test::final_hash(whole));
  }
}

TEST_F(CarryTest, AnInterruptedRunEndsWithTheSameBits) {
  const auto whole = setup("whole");
  run(whole);
  auto parts = setup("parts");
  parts.handle_signals = true;
  for (const int64_t last : {3, 7, -1}) {
    RecurrentTask task;
    task.signal_at = last;
    EXPECT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  EXPECT_EQ(saved(parts), saved(whole));
}

TEST_F(CarryTest, CheckpointsWrittenBesideTrainingAndAtOnceAreEqual) {
  auto beside = setup("beside"), at_once = setup("at_once");
  at_once.train.save_in_background = false;
  run(beside);
  run(at_once);
  EXPECT_EQ(saved(at_once), saved(beside));
}

// Several processes.

TEST_F(CarryTest, AnyNumberOfProcessesGivesTheSameBits) {
  const auto alone = setup("alone");
  run(alone);
  for (const auto& strategy : kStrategies) {
    for (const size_t ranks : {2, 3}) {
      auto several = setup(strategy + std::to_string(ranks));
      several.dist.strategy = strategy;
      run(several, ranks);
      EXPECT_EQ(saved(several), saved(alone)) << strategy << " " << ranks;
    }
  }
}

TEST_F(CarryTest, ARunGoesOnWithTheSameBitsOnAnotherNumberOfProcesses) {
  const auto whole = setup("whole");
  run(whole);
  auto parts = setup("parts");
  const std::vector<std::pair<size_t, int64_t>> table{{1, 3}, {3, 6}, {2, 9}, {3, 10}, {1, 0}};
  for (const auto& [ranks, until] : table) {
    parts.until = until;
    run(parts, ranks);
  }
  EXPECT_EQ(saved(parts), saved(whole));
}

TEST_F(CarryTest, ASkippedUpdateLeavesTheStateOnAllProcesses) {
  const auto alone = setup("alone"), several = setup("several");
  RecurrentTask one;
  one.nan_at = 4;
  run(alone, one);
  Tasks three(3);
  three[0].nan_at = 4;  // lane 0 is that of rank 0; the others go on without a step
  run(several, three);
  EXPECT_EQ(saved(several), saved(alone));
  // The reports have the state of all lanes.
  const auto report_of = [](const TrainerSetup& setup) {
    const auto file = setup.run_directory / "forensics" / "step_00000005.json";
    return store::SafetensorsFile(read_report(file).carry);
  };
  const auto of_one = report_of(alone), of_three = report_of(several);
  ASSERT_EQ(of_one.tensors().size(), 2U);
  for (const auto& tensor : of_one.tensors()) {
    EXPECT_EQ(of_three.find(tensor.name)->bytes, tensor.bytes) << tensor.name;
    EXPECT_EQ(tensor.shape.front(), kLanes);
  }
}

TEST_F(CarryTest, MicroBatchesAreNotCutAmongProcesses) {
  auto setup = this->setup("run");
  setup.train.update_freq = 2;
  setup.dist.deterministic = false;
  Tasks tasks;
  for (int i = 0; i < 3; ++i) tasks.emplace_back(/*groups=*/2);
  run(setup, tasks);
  const std::vector<size_t> halves(12, 6);  // of the twelve lanes
  EXPECT_EQ(tasks[0].batch_sizes, halves);
  EXPECT_EQ(tasks[1].batch_sizes, halves);
  EXPECT_TRUE(tasks[2].batch_sizes.empty());
  EXPECT_TRUE(state(setup, "stretches").eq(12).all().item<bool>());
}

// Update frequencies.

TEST_F(CarryTest, AnUpdateMayContinueAPartOfTheLanes) {
  auto alone = setup("alone"), several = setup("several");
  for (auto* one : {&alone, &several}) one->train.update_freq = 3;
  RecurrentTask task;
  run(alone, task);
  EXPECT_EQ(task.reads, (Reads{{0, 0}, {2, 1}, {4, 2}, {6, 3}, {8, 4}, {10, 5}}));
  EXPECT_TRUE(state(alone, "stretches").eq(6).all().item<bool>());
  run(several, 2);
  EXPECT_EQ(saved(several), saved(alone));
}

TEST_F(CarryTest, AnUpdateInWhichALaneComesTwiceIsRefused) {
  auto setup = this->setup("run");
  setup.train.update_freq = 2 * kGroups;
  RecurrentTask task;
  const Error error = failure(ExitCode::kUsage, [&] { Trainer(task, setup).run(); });
  EXPECT_EQ(error.message().substr(0, error.message().find('\n')),
            "lane 0 comes twice in one update");
  EXPECT_NE(error.advice().find("train.update_freq"), std::string::npos) << error.advice();
}

TEST_F(CarryTest, ALaneThatWouldChangeItsProcessIsRefusedOnAllOfThem) {
  auto setup = this->setup("run");
  setup.train.update_freq = 4;
  Tasks tasks(2);
  std::vector<std::string> said(2);
  run_ranks(2, [&](const distributed::ProcessGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    said[rank] =
        failure(ExitCode::kUsage, [&] { Trainer(tasks[rank], setup, group).run(); }).message();
  });
  EXPECT_TRUE(
      said[0].starts_with("lane 0 comes in micro-batch 2 of an update, and came in "
                          "micro-batch 0 of another"))
      << said[0];
  EXPECT_EQ(said[1], said[0]);
}

TEST_F(CarryTest, BatchesThatContinueNothingAreRefused) {
  RecurrentTask task;
  task.source().said_order = data::Order::kAny;
  EXPECT_THROW(Trainer(task, setup("run")), c10::Error);
}

TEST_F(CarryTest, WithoutMemoryForAMicroBatchItStopsInsteadOfSplitting) {
  RecurrentTask task;
  task.out_of_memory_at = 5;
  const Error error = failure(ExitCode::kOutOfMemory, [&] { Trainer(task, setup("run")).run(); });
  EXPECT_NE(error.message().find("which is not split, since its lanes take a state to the next "
                                 "update"),
            std::string::npos)
      << error.message();
}

// Replays.

TEST_F(CarryTest, AReportRunsAgainWithTheStateThatItsUpdateRead) {
  for (const size_t ranks : {1, 3}) {
    auto setup = this->setup("run" + std::to_string(ranks));
    setup.train.forensics = {.policy = "stop", .stop_after = 1};
    Tasks tasks(ranks);
    for (auto& task : tasks) task.nan_after = 7;
    run_ranks(static_cast<int>(ranks), [&](const distributed::ProcessGroup& group) {
      const auto rank = static_cast<size_t>(group.rank());
      failure(ExitCode::kNumeric, [&] { Trainer(tasks[rank], setup, group).run(); });
    });
    const auto saved = read_report(setup.run_directory / "forensics" / "step_00000008.json");
    EXPECT_EQ(saved.report.first.name, "loss");
    EXPECT_TRUE(saved.report.samples.empty()) << "tied samples are not tried alone";

    RecurrentTask again;
    again.nan_after = 7;
    optim::Arena arena(again.model());
    const std::vector<data::Batch> batches{again.train_batches().load(1, 3 * kGroups)};
    parallel::Carry carry(again.carry(), {});
    auto context = saved.report.context;
    context.carry = &carry;
    const auto look = [&] {
      return examine(again, arena, batches, context, 1, kernels::Compute::kFp32);
    };
    EXPECT_FALSE(look().found()) << "the first state has no stretch";
    load_carry(saved, carry);
    EXPECT_EQ(look().first, saved.report.first);
    EXPECT_TRUE(carry.states()[1].values.eq(7).all().item<bool>());
  }
}

TEST_F(CarryTest, AReportNamesAStateThatIsNotFinite) {
  auto setup = this->setup("run");
  setup.train.forensics = {.policy = "stop", .stop_after = 1};
  RecurrentTask task;
  task.spoilt_at = 4;
  failure(ExitCode::kNumeric, [&] { Trainer(task, setup).run(); });
  const auto saved = read_report(setup.run_directory / "forensics" / "step_00000006.json");
  const std::vector<NonfiniteWeight> expected{{.name = "carry/h", .count = 2 * kHidden}};
  EXPECT_EQ(saved.report.weights, expected);
}

TEST_F(CarryTest, AReportWithoutAStateIsRefused) {
  RecurrentTask task;
  parallel::Carry carry(task.carry(), {});
  const Error error = failure(ExitCode::kBadData, [&] { load_carry({}, carry); });
  EXPECT_NE(error.message().find("has no state of lanes"), std::string::npos) << error.message();
  parallel::Carry none({}, {});
  load_carry({}, none);
}

TEST_F(CarryTest, RunsWithoutAStateHaveNeitherTensorsNorFilesOfOne) {
  auto setup = test::toy_setup(root_ / "run");
  setup.handle_signals = false;
  test::ToyTask task;
  task.nan_at = 4;
  EXPECT_EQ(Trainer(task, setup).run(), ExitCode::kOk);
  for (const auto& [name, bytes] : saved(setup)) {
    EXPECT_EQ(name.find("carry"), std::string::npos) << name;
  }
  const auto file = setup.run_directory / "forensics" / "step_00000005.json";
  EXPECT_TRUE(read_report(file).carry.empty());
}

}  // namespace
}  // namespace stretto::train
