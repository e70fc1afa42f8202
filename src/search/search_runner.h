#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "search/journal.h"
#include "search/search_folder.h"
#include "search/search_output.h"
#include "search/search_state.h"
#include "search/search_view.h"
#include "search/trial_data.h"
#include "search/trial_points.h"
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
/// Each decision is in the journal before a process is started, and each result before anything
/// follows from it, so that the search may be killed at any moment. With one trial at a time, or
/// with search.deterministic, results are taken in the order in which trainings began, and the
/// table is a function of file, seed and number of slots.
///
/// It drives the journal: the points (TrialPoints), the processes (TrialPool), the screen
/// (SearchView) and the files (SearchOutput) are parts of their own. When no host is left for
/// trials, run() throws Error(kPeerLost).
class SearchRunner {
 public:
  /// Takes the lock of DIR and replays its journal. Throws Error(kUsage) when another process has
  /// the lock or DIR holds another search (search/changes.h), Error(kBadData) for a damaged
  /// journal, for trials without one, and when data have changed since the search began: the
  /// journal then stays as it is.
  explicit SearchRunner(RunnerSetup setup);
  ~SearchRunner();

  /// @return kOk at the end, kInterrupted after a signal: the same command goes on
  /// Throws Error when no trial has a result, and Error(kBadData) when data change meanwhile: no
  /// trial counts as failed by that.
  ExitCode run();

  const SearchState& state() const { return *state_; }

 private:
  void open_journal();
  void tell_plan() const;
  bool in_order() const;
  void go_on_with_running();
  void start(const Job& job);
  TrialRun run_of(const Job& job, const Host& host);
  void require_same_data();
  void fill_slots();
  void poll();
  bool take_result();
  void take(const EndedJob& ended);
  bool trains_again(const Job& job, const std::string& why);
  void note_failure(const EndedJob& ended);
  [[noreturn]] void refuse(const EndedJob& ended);
  void refuse_changed_data(const EndedJob& ended);
  bool has_failed_for_good(const Job& job) const;
  Report failure_of(const Job& job) const;
  void report(const Job& job, const Report& report);
  bool is_time_up() const;
  double clock() const;
  void prune(bool at_end);
  ExitCode leave_interrupted();
  ExitCode finish();
  [[noreturn]] void refuse_without_result() const;

  RunnerSetup setup_;
  FileLock lock_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<SearchState> state_;
  SearchView view_;
  TrialPool pool_;
  TrialData data_;
  TrialPoints points_;
  SearchOutput output_;
  std::vector<EndedJob> ended_;  // whose results were not taken
  std::set<TrialId> pruned_;     // without checkpoints
  std::set<TrialId> resumed_;    // whose process found a run in their folder
  std::set<TrialId> ahead_;      // of the journal, which was told
  std::set<std::pair<TrialId, int64_t>> trained_again_;  // jobs, in this session
  double clock_before_ = 0;                              // of earlier sessions
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace stretto::search
