#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/journal.h"
#include "search/scheduler.h"
#include "search/search_plan.h"

namespace stretto::search {

/// What a trial reported at the end of a job.
struct Report {
  int64_t until = 0;            ///< updates that it was to make
  int64_t step = 0;             ///< updates that it had made by then
  std::optional<double> value;  ///< of the metric; absent: the trial failed for good
  double seconds = 0;           ///< that it has trained in all
};

/// Where a trial stands.
enum class TrialState {
  kRunning,   ///< a job of it has not reported
  kWaiting,   ///< may go on, if others turn out worse
  kStopped,   ///< ended early, for good
  kFinished,  ///< trained to its end
  kFailed,    ///< failed for good
};
const char* name_of(TrialState state);

struct Trial {
  TrialId id = 0;
  Point point;
  std::vector<Report> reports;  ///< in the order of updates
  int64_t failures = 0;         ///< trainings that failed
  std::string why;              ///< the last of them
  int exit_code = 0;            ///< its code
  int64_t failed_until = 0;     ///< of its job

  /// By its last report; 0 before the first. Fewer than its job was to make where it failed, or
  /// its configuration ended it before.
  int64_t updates() const { return reports.empty() ? 0 : reports.back().step; }
  /// The value of its last report; absent before the first, and where it failed for good.
  std::optional<double> value() const {
    return reports.empty() ? std::nullopt : reports.back().value;
  }
};

/// How a search stands: a fold over its journal. Live, each decision is taken here and then
/// written; a search that goes on replays what was written, and must come to the same decisions.
class SearchState {
 public:
  explicit SearchState(SearchPlan plan);
  /// Replays a whole journal. Throws Error(kBadData) where an entry does not follow from those
  /// before it.
  /// @param where  the journal, for messages
  static SearchState replay(const std::vector<JournalEntry>& entries, const std::string& where);

  /// What begins a journal, and what notes that the plan has changed.
  static JournalEntry entry_of(const SearchPlan& plan, const char* event);

  // Each of these changes the state, and returns the line that must be written before anything is
  // done about it.

  /// The job of a free slot; absent = nothing to do before the next report.
  /// @param choice  the point of the next new trial; absent = there is none
  struct BegunJob {
    Job job;
    JournalEntry entry;
  };
  std::optional<BegunJob> next(const std::optional<Sampler::Choice>& choice);
  /// A training failed. It may be tried again.
  JournalEntry fail(const Job& job, int exit_code, const std::string& why);
  /// A job has ended for good.
  /// @param clock  seconds that all sessions have searched so far
  JournalEntry report(const Job& job, const Report& report, double clock);
  JournalEntry change(SearchPlan plan);
  /// Gives the plan and the points that there are absolute paths, see with_absolute_values().
  void make_values_absolute(const std::filesystem::path& folder);

  const SearchPlan& plan() const { return plan_; }
  const std::vector<Trial>& trials() const { return trials_; }
  const Trial& trial(TrialId id) const { return trials_.at(static_cast<size_t>(id)); }
  const Scheduler& scheduler() const { return *scheduler_; }
  /// Jobs without a report, in the order in which they were begun.
  const std::vector<Job>& running() const { return running_; }
  std::set<std::string> known_points() const;
  size_t num_enqueued() const { return num_enqueued_; }
  double clock() const { return clock_; }

  TrialState state_of(TrialId trial) const;
  /// Whether its last report has a finite value.
  bool has_score(TrialId trial) const {
    return plan_.score_of(this->trial(trial).value()).has_value();
  }
  /// The best of the trials that were trained furthest: other lengths are no fair comparison.
  std::optional<TrialId> best() const;
  /// Whether `a` is better than `b` in that sense; trials without a score are worse than any.
  bool is_better(TrialId a, TrialId b) const;

 private:
  void apply(const JournalEntry& entry);
  void take_run(const JournalEntry& entry);
  void forget(const Job& job);

  SearchPlan plan_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<Trial> trials_;
  std::vector<Job> running_;
  size_t num_enqueued_ = 0;
  double clock_ = 0;
};

}  // namespace stretto::search
