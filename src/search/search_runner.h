#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "search/search_driver.h"
#include "search/search_folder.h"
#include "search/search_output.h"
#include "search/search_view.h"
#include "search/trial_pool.h"

namespace stretto::search {

/// What a search is run with.
struct RunnerSetup {
  std::filesystem::path directory;  ///< DIR
  SearchPlan plan;
  TrialCommand command;
  int cores = 1;           ///< of this machine, for search.slots = 0
  std::string shown = {};  ///< name of the search file, for messages
  /// Where `search.points` stands, for messages.
  std::string points_place = "search.points";
  std::vector<std::string> gpus = {};     ///< of this machine
  std::vector<Host> hosts = {};           ///< of search.hosts; empty = this machine alone
  std::vector<std::string> watcher = {};  ///< what runs watch_trial() on another host
  /// Goes on although data have changed since the search began, and so do its trials.
  bool accept_data = false;
  /// That a host is left alone after its first failure.
  std::chrono::milliseconds host_pause{5000};
  /// Between two looks at the processes.
  std::chrono::milliseconds tick{50};
};

/// Runs a search to its end, or goes on with the one that DIR has.
///
/// The driver decides, the pool trains, and view and output show what came of it. A result is in
/// the journal before anything follows from it. With one trial at a time, or with
/// search.deterministic, results are taken in the order in which trainings began, and the table is
/// a function of file, seed and number of slots. When no host is left for trials, run() throws
/// Error(kPeerLost).
class SearchRunner {
 public:
  /// Throws as SearchDriver does, and Error(kUsage) when this machine lacks GPUs for a trial.
  explicit SearchRunner(RunnerSetup setup);

  /// @return kOk at the end, kInterrupted after a signal: the same command goes on
  /// Throws Error when no trial has a result, and Error(kBadData) when data change meanwhile: no
  /// trial counts as failed by that.
  ExitCode run();

  const SearchState& state() const { return driver_.state(); }

 private:
  std::filesystem::path folder_of(TrialId trial) const;
  void fill_slots();
  void start(const Job& job);
  TrialRun run_of(const Job& job, const Host& host);
  void poll();
  void take(const EndedJob& ended);
  [[noreturn]] void refuse(const EndedJob& ended) const;
  void refuse_changed_data(const EndedJob& ended) const;
  void note_failure(const Job& job, int code, const std::string& why);
  bool trains_again(const Job& job, const std::string& why);
  bool take_result();
  void take_value(const Job& job);
  void report(const Job& job, const Report& report);
  void prune(bool at_end);
  ExitCode leave_interrupted();
  ExitCode finish();
  [[noreturn]] void refuse_without_result() const;

  RunnerSetup setup_;
  TrialPool pool_;
  SearchDriver driver_;
  SearchView view_;
  SearchOutput output_;
  std::set<TrialId> pruned_;   // without checkpoints
  std::set<TrialId> resumed_;  // whose process found a run in their folder
  std::set<TrialId> ahead_;    // of the journal, which was told
  std::set<std::pair<TrialId, int64_t>> trained_again_;  // jobs, in this session
};

}  // namespace stretto::search
