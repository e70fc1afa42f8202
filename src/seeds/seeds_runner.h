#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/folder_data.h"
#include "report/display.h"
#include "seeds/seeds_record.h"

namespace stretto {
class StopSignals;
}

namespace stretto::seeds {

/// What several seeds of one experiment are trained with.
struct SeedsSetup {
  std::filesystem::path directory;  ///< DIR
  struct Run {
    int64_t seed = 0;
    std::string fingerprint;  ///< as SeedRun::fingerprint
  };
  std::vector<Run> runs;
  /// The words of a training: `stretto train`, but for tests.
  using Command =
      std::function<std::vector<std::string>(int64_t seed, const std::filesystem::path& run)>;
  Command command;
  /// The data files of all seeds: DIR/data.json keeps their digests. A seed is not trained on other
  /// data than those before it, unless what has changed is accepted.
  std::vector<data::DataFile> data_files = {};
  data::DigestSetting digests = {};
  bool accept_data = false;
  BestBy best_by = {};
  report::Display display = {};
  std::chrono::milliseconds tick{50};  ///< between two looks at the process
};

/// Trains the seeds one after the other, each in DIR/seed_N and in a process of its own, which dies
/// with this one: then it saves and leaves. The same command goes on: runs that have finished the
/// same configuration are not started again.
///
/// DIR/seeds.json is written before and after each training. A run that diverges
/// (ExitCode::kNumeric) is a result: the others are trained all the same. Any other failure ends
/// the command.
class SeedsRunner {
 public:
  /// Takes the lock of DIR. Throws Error(kUsage) when another process has it, when DIR is the
  /// folder of a run or of a search, and when it holds seeds that are not asked for. Throws
  /// Error(kBadData) when data have changed, and when scores of a finished run have.
  explicit SeedsRunner(SeedsSetup setup);

  /// @return 0 when all have finished, else the exit code of the training that did not;
  ///         ExitCode::kInterrupted after a signal
  int run();

  /// What seeds.json holds.
  nlohmann::ordered_json json() const;
  /// The table for people: a line a run, then mean and deviation.
  std::string table() const;

 private:
  std::filesystem::path directory_of(const SeedRun& run) const;
  void adopt_earlier_runs();
  void note(SeedRun& run, SeedState state, std::optional<int> exit_code);
  void wait_for_earlier_process(const SeedRun& run, const StopSignals& signals) const;
  int train(SeedRun& run, const StopSignals& signals);
  std::vector<RunScores> scores() const;
  void require_same_data();

  SeedsSetup setup_;
  FileLock lock_;
  data::FolderData data_;
  std::vector<SeedRun> runs_;
};

}  // namespace stretto::seeds
