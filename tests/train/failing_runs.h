#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "store/checkpoint.h"
#include "tests/base/temp_dir.h"
#include "tests/train/failing_task.h"

namespace stretto::train::test {

/// Runs of FailingTask, each in a folder of its own.
class FailingRuns : public ::testing::Test {
 protected:
  using Steps = std::vector<int64_t>;

  static constexpr double kPeak = 0.05;  ///< the rate of toy_setup()

  TrainerSetup setup(const std::string& name) const { return toy_setup(root_ / name); }

  /// Trains in one go, or in parts that a signal ends in these steps, each with a task of its own.
  template <class Prepare>
  static void train(const TrainerSetup& run, const Prepare& prepare, Steps ends = {}) {
    ends.push_back(-1);
    for (const int64_t end : ends) {
      FailingTask task;
      prepare(task);
      task.signal_at = end;
      ASSERT_EQ(Trainer(task, run).run(), end < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
    }
  }

  /// In parts that are runs of their own, each with its last validation.
  template <class Prepare>
  static void train_until(TrainerSetup run, const Prepare& prepare, const Steps& ends) {
    for (const int64_t end : ends) {
      run.train.max_steps = end;
      train(run, prepare);
    }
  }

  static int64_t skipped_of(const std::vector<report::MetricsEvent>& updates) {
    return std::ranges::count_if(updates, [](const auto& e) { return e.skipped.value_or(false); });
  }

  /// What ends the run.
  static std::optional<Error> error_of(const TrainerSetup& run, FailingTask& task) {
    try {
      Trainer(task, run).run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kNumeric);
      return error;
    }
    ADD_FAILURE() << "expected an error";
    return std::nullopt;
  }

  static Steps checkpoints(const TrainerSetup& run) {
    return store::CheckpointStore(run.run_directory).steps();
  }
  /// Steps of the checkpoints that were given up.
  static std::multiset<int64_t> undone(const TrainerSetup& run) {
    std::multiset<int64_t> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(run.run_directory / "checkpoints")) {
      if (!entry.path().filename().string().starts_with("undone-")) continue;
      found.insert(store::CheckpointStore::load(entry.path()).step);
    }
    return found;
  }

  stretto::testing::TempDir root_;
};

}  // namespace stretto::train::test
