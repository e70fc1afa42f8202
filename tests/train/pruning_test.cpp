// compress.prune in training: what is zero stays so in updates, averages, checkpoints and resumes,
// and in runs that begin with such a one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "compress/masks.h"
#include "runs/stored_masks.h"
#include "runs/train_state.h"
#include "store/checkpoint.h"
#include "tests/train/toy_runs.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

using test::events, test::final_hash, test::Remembering, test::tensors_of, test::values_of;

// The toy's matrix has twelve weights, the first of its numbers; its bias is not pruned.
constexpr int64_t kMatrix = 12;

int64_t zeros_in(const torch::Tensor& weights) {
  return weights.slice(0, 0, kMatrix).eq(0).sum().item<int64_t>();
}

/// Whether all that is zero in the matrix of one is so in the other.
bool keeps_zeros(const torch::Tensor& before, const torch::Tensor& after) {
  const torch::Tensor zeros = before.slice(0, 0, kMatrix).eq(0);
  return after.slice(0, 0, kMatrix).eq(0).logical_or(zeros.logical_not()).all().item<bool>();
}

std::string last_checkpoint(const TrainerSetup& run) {
  return store::CheckpointStore(run.run_directory).path_of(12).string();
}

class PruningRuns : public test::ToyRuns {
 protected:
  /// A quarter more after 2, 5 and 8 updates, of twelve.
  TrainerSetup setup(const std::string& name) const {
    auto setup = ToyRuns::setup(name);
    setup.compress.prune = {
        .sparsity = 0.75, .schedule = "steps", .begin = 2, .every = 3, .increment = 0.25};
    return setup;
  }
};

TEST_F(PruningRuns, AQuarterMoreAfterEveryThirdUpdate) {
  const auto run = setup("run");
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const std::vector<int64_t> zeros{0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 9};  // by completed updates
  const auto trained = events(run, "train");
  ASSERT_EQ(trained.size(), zeros.size());
  for (size_t i = 0; i < zeros.size(); ++i) {
    const torch::Tensor& weights = task.in_forward.at(static_cast<int64_t>(i));
    EXPECT_EQ(zeros_in(weights), zeros[i]) << i;
    EXPECT_EQ(weights.slice(0, kMatrix).eq(0).sum().item<int64_t>(), 0) << "the bias, " << i;
    if (i > 0) {
      const torch::Tensor& before = task.in_forward.at(static_cast<int64_t>(i) - 1);
      EXPECT_TRUE(keeps_zeros(before, weights)) << i;
      EXPECT_EQ(torch::equal(before, weights), i == 1)
          << "what is left trains, but for update 1, whose rate is 0: " << i;
    }
    if (zeros[i] == 0) {
      EXPECT_FALSE(trained[i].sparsity.has_value()) << i;
    } else {
      EXPECT_EQ(trained[i].sparsity, static_cast<double>(zeros[i]) / kMatrix) << i;
    }
  }
  EXPECT_EQ(zeros_in(task.weights()), 9);
}

TEST_F(PruningRuns, OnceAndCubicPruneByTheirRules) {
  const std::vector<std::pair<compress::PruneOptions, std::vector<int64_t>>> table{
      {{.sparsity = 0.5, .schedule = "once", .begin = 0}, {6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}},
      // 0.75 - 0.75 (1 - i / 3)^3 of twelve: 6.3, 8.7, 9.
      {{.sparsity = 0.75, .schedule = "cubic", .begin = 1, .every = 2, .end = 5},
       {0, 6, 6, 8, 8, 9, 9, 9, 9, 9, 9, 9}}};
  for (const auto& [options, zeros] : table) {
    auto run = setup(options.schedule);
    run.compress.prune = options;
    Remembering task;
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    for (size_t i = 0; i < zeros.size(); ++i) {
      EXPECT_EQ(zeros_in(task.in_forward.at(static_cast<int64_t>(i))), zeros[i])
          << options.schedule << i;
    }
  }
}

// A skipped update comes to the same pruning again.
TEST_F(PruningRuns, ASkippedUpdateDoesNotPruneTwice) {
  const auto run = setup("run");
  Remembering task;
  task.nan_at = 5;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const std::vector<int64_t> zeros{0, 0, 3, 3, 3, 6, 6, 6, 6, 9, 9, 9, 9};  // by steps
  for (size_t i = 0; i < zeros.size(); ++i) {
    EXPECT_EQ(zeros_in(task.in_forward.at(static_cast<int64_t>(i))), zeros[i]) << i;
  }
}

// The table of what belongs to a weight, for rules with and without momentum: all of it is zero.
TEST_F(PruningRuns, CheckpointsHaveZerosWhereverAPrunedWeightHasSomething) {
  for (const std::string name : {"adam", "adamw", "sgd", "lamb", "rmsprop", "adagrad", "ftrl"}) {
    auto run = setup(name);
    run.optim.name = name;
    run.optim.weight_decay = 0.1;
    run.train.ema_decay = 0.9;
    Remembering task;
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    const auto tensors = tensors_of(run);
    const auto marks = compress::unpack_mask(tensors.at("masks:weight"), kMatrix);
    EXPECT_EQ(tensors.count("masks:bias"), 0U);
    int64_t looked_at = 0;
    for (const auto& [key, bytes] : tensors) {
      if (key.starts_with("masks:") || !key.ends_with("weight")) continue;
      ASSERT_EQ(bytes.size(), kMatrix * sizeof(float)) << name << " " << key;
      std::string copy = bytes;
      const torch::Tensor values = torch::from_blob(copy.data(), {kMatrix}).clone();
      for (int64_t i = 0; i < kMatrix; ++i) {
        if (marks[static_cast<size_t>(i)] != 0) {
          EXPECT_EQ(values[i].item<float>(), 0) << name << " " << key << " " << i;
        }
      }
      EXPECT_EQ(zeros_in(values), 9) << name << " " << key;
      ++looked_at;
    }
    EXPECT_GE(looked_at, 2) << name << ": the average and the weights at least";
  }
}

TEST_F(PruningRuns, ValidationsAndAveragesHaveTheZeros) {
  auto run = setup("run");
  run.train.ema_decay = 0.9;
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  ASSERT_EQ(task.validated.size(), 3U);  // after 4, 8 and 12 updates
  EXPECT_EQ(zeros_in(task.validated[0]), 3);
  EXPECT_EQ(zeros_in(task.validated[1]), 6);
  EXPECT_EQ(zeros_in(task.validated[2]), 9);
}

// The toy's losses are 3, 2 and 2.5: the second is the lowest, but more is pruned behind it.
TEST_F(PruningRuns, TheBestIsOneOfThoseThatWerePrunedTheFurthest) {
  auto run = setup("run");
  run.train.patience = 1;
  run.train.keep_best = 1;
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(zeros_in(task.weights()), 9) << "it was trained to its end";
  const auto newest =
      store::CheckpointStore::load(store::CheckpointStore(run.run_directory).path_of(12));
  const auto state = runs::TrainState::from_json(newest.state_json, "state.json");
  EXPECT_EQ(state.quality.size(), 3U);
  EXPECT_EQ(state.best_from, 9) << "the last pruning is behind the eighth update";
  EXPECT_EQ(state.best_step(), 12);
}

TEST_F(PruningRuns, ARunThatIsCutInPartsHasTheSameBits) {
  for (const double ema : {0.0, 0.9}) {
    const std::string name = ema > 0 ? "ema" : "plain";
    auto whole = setup(name), parts = setup(name + "_parts");
    whole.train.ema_decay = parts.train.ema_decay = ema;
    Remembering undisturbed;
    ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
    EXPECT_EQ(hash_of_run_in_parts(parts), final_hash(whole)) << name;
    EXPECT_TRUE(tensors_of(parts) == tensors_of(whole)) << name;
  }
}

TEST_F(PruningRuns, NoiseOnWeightsLeavesZerosAlone) {
  auto run = setup("run");
  run.optim.weight_noise = 0.1;
  run.optim.gradient_noise = 0.1;
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const std::vector<int64_t> zeros{0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 9};
  for (size_t i = 0; i < zeros.size(); ++i) {
    EXPECT_EQ(zeros_in(task.in_forward.at(static_cast<int64_t>(i))), zeros[i]) << i;
  }
}

// Of checkpoints with fewer zeros and more: those of the newest hold.
TEST_F(PruningRuns, TheMeanOfCheckpointsHasTheZerosOfTheNewest) {
  auto run = setup("run");
  run.train.average_last = 3;
  Remembering task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto mean = store::CheckpointStore::load(run.run_directory / "checkpoints/averaged");
  const auto newest =
      store::CheckpointStore::load(store::CheckpointStore(run.run_directory).path_of(12));
  const auto masks = runs::stored_masks(mean);
  EXPECT_EQ(masks, runs::stored_masks(newest));
  std::string bytes(mean.file("model").find("weight")->bytes);
  EXPECT_EQ(zeros_in(torch::from_blob(bytes.data(), {kMatrix})), 9);
}

TEST_F(PruningRuns, ARunThatBeginsWithAPrunedOneKeepsItsZeros) {
  const auto first = setup("first");
  Remembering pruned;
  ASSERT_EQ(Trainer(pruned, first).run(), ExitCode::kOk);
  for (const bool hold : {true, false}) {
    auto second = ToyRuns::setup(hold ? "holds" : "does_not");
    second.train.init_from = last_checkpoint(first);
    second.compress.prune.hold = hold;
    Remembering task;
    ASSERT_EQ(Trainer(task, second).run(), ExitCode::kOk);
    EXPECT_TRUE(keeps_zeros(pruned.weights(), task.in_forward.at(0)));
    EXPECT_EQ(zeros_in(task.weights()), hold ? 9 : 0) << hold;
    EXPECT_EQ(tensors_of(second).count("masks:weight"), hold ? 1U : 0U);
    // It goes on with them as well.
    if (hold) {
      auto parts = second;
      parts.run_directory = root_ / "parts";
      std::filesystem::create_directories(parts.run_directory);
      EXPECT_EQ(hash_of_run_in_parts(parts), final_hash(second));
    }
  }
}

TEST_F(PruningRuns, ARunPrunesOnTopOfWhatItBeginsWith) {
  const auto first = setup("first");
  Remembering pruned;
  ASSERT_EQ(Trainer(pruned, first).run(), ExitCode::kOk);
  auto second = ToyRuns::setup("second");
  second.train.init_from = last_checkpoint(first);
  second.compress.prune = {.sparsity = 0.9, .schedule = "once", .begin = 4};
  Remembering task;
  ASSERT_EQ(Trainer(task, second).run(), ExitCode::kOk);
  EXPECT_EQ(zeros_in(task.in_forward.at(3)), 9);
  EXPECT_EQ(zeros_in(task.in_forward.at(4)), 10);
  EXPECT_TRUE(keeps_zeros(pruned.weights(), task.weights()));
}

TEST_F(PruningRuns, ARollbackTakesTheMasksOfItsCheckpoint) {
  auto run = setup("run");
  run.train.forensics.policy = "rollback";
  run.train.forensics.stop_after = 1;
  run.train.forensics.rollback_lr_factor = 0.5;
  Remembering task;
  task.nan_at = 6;     // behind the second pruning; the checkpoint of step 4 is before it
  task.nan_times = 2;  // in training and when it is examined
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(zeros_in(task.weights()), 9);
}

TEST_F(PruningRuns, RefuseAPruningThatNoTrainingFollows) {
  auto run = setup("run");
  run.train.max_steps = 0;
  run.train.max_epochs = 1;  // eight updates, and the last pruning is behind the eighth
  Remembering task;
  try {
    Trainer(task, run).run();
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("compress.prune"), std::string::npos);
  }
}

}  // namespace
}  // namespace stretto::train
