#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "search/journal.h"
#include "search/search_state.h"
#include "search/trial_data.h"
#include "search/trial_points.h"

namespace stretto::search {

/// What a search decides: which trial trains next and how far, which training is tried again, and
/// which result counts next. Each decision is in the journal before the call that made it returns,
/// so that the search may be killed at any moment. It knows no process, no host and no screen.
class SearchDriver {
 public:
  /// Takes the lock of DIR and replays its journal. Throws Error(kUsage) when another process has
  /// the lock or DIR holds another search (search/changes.h), Error(kBadData) for a damaged
  /// journal, for trials without one, and when data have changed since the search began: the
  /// journal then stays as it is.
  /// @param directory     DIR
  /// @param points_place  where `search.points` stands, for messages
  /// @param accept_data   goes on although data have changed since the search began
  SearchDriver(std::filesystem::path directory, SearchPlan plan, const std::string& points_place,
               bool accept_data);

  const SearchState& state() const { return state_; }
  /// Whether search.max_hours are over, all sessions together.
  bool is_time_up() const;

  /// Jobs that an earlier session began, and that have to train still.
  std::vector<Job> unfinished() const;
  /// The job of a free slot; absent = there is nothing to do before the next result, or no time.
  std::optional<Job> next();
  /// Before a job trains. Throws Error(kUsage) when the configuration was changed (search/
  /// changes.h), Error(kBadData) when data were.
  void require_same_files(const Job& job);

  /// A job has trained to its end, and waits for its turn.
  void ended(const Job& job) { ended_.push_back(job); }
  /// The job whose result counts next, taken off those that wait.
  /// @param in_order  the oldest of all that run is waited for
  std::optional<Job> take_ended(bool in_order);
  /// A training failed. @return whether it is tried again; if not, the job waits for its turn
  bool fail(const Job& job, int exit_code, const std::string& why);
  /// Whether the job has no result but its failure.
  bool has_failed_for_good(const Job& job) const;
  void report(const Job& job, const Report& report);

 private:
  void go_on();
  double clock() const;

  std::filesystem::path directory_;
  SearchPlan plan_;  // that it goes on with
  FileLock lock_;
  TrialData data_;
  Journal journal_;
  SearchState state_;
  TrialPoints points_;
  std::vector<Job> ended_;   // whose results were not taken
  double clock_before_ = 0;  // of earlier sessions
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace stretto::search
