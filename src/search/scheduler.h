#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/search_options.h"

namespace stretto::search {

/// The budget of a grid that is tried as a whole: its points end it.
inline constexpr int64_t kAllPoints = 1'000'000'000'000;

/// The number of a trial: 0, 1, 2, … in the order in which they were begun.
using TrialId = int64_t;

/// A training that is to be run: trial `trial` until it has made `until` updates in all.
struct Job {
  TrialId trial = 0;
  int64_t until = 0;
  bool begins = false;  ///< the trial is a new one
  bool operator==(const Job&) const = default;
};

/// What became of a job.
struct Result {
  TrialId trial = 0;
  int64_t until = 0;
  /// What trials are ranked by, less is better; absent when the trial failed for good, which is
  /// worse than any number.
  std::optional<double> score;
};

/// One competitor of a rung.
struct Competitor {
  TrialId trial = 0;
  std::optional<double> score;  ///< absent: failed
  bool went_on = false;         ///< to the next rung
};

/// Whether `a` stands before `b`: the better score, failed ones last, equal ones by their numbers.
bool ranks_before(const Competitor& a, const Competitor& b);

/// Trials that were trained for the same number of updates, the best first.
struct Rung {
  int64_t bracket = 0;
  int64_t until = 0;
  bool is_last = false;           ///< no trial goes on from here
  size_t quota = 0;               ///< how many may go on, of those that there are
  std::optional<double> cut_off;  ///< the score that a competitor must be better than, or equal
  std::string rule;               ///< what the cut-off is, in words
  std::vector<Competitor> competitors;
};

/// Decides which trial is trained, and how far: a state machine without clock, process or random
/// number. The same calls in the same order give the same answers, so that a search can be replayed
/// from its journal.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// What a free slot does.
  /// @param may_begin  whether there is a point for another trial
  /// @return absent when there is nothing to do before the next report
  virtual std::optional<Job> next(bool may_begin) = 0;
  /// A job has ended.
  virtual void report(const Result& result) = 0;
  /// More trials may be begun than before.
  virtual void raise_budget(int64_t max_trials) = 0;

  /// Whether the trial can never be trained further, whatever others report.
  virtual bool is_over(TrialId trial) const = 0;
  /// The bracket of a trial, from 0.
  virtual int64_t bracket_of(TrialId /*trial*/) const { return 0; }
  /// How it stands, for people; rungs from the first to the last, bracket by bracket.
  virtual std::vector<Rung> rungs() const = 0;
  /// How it is set up, in words, a line each: brackets and their rungs.
  virtual std::vector<std::string> plan() const = 0;
};

/// "16 trials of 64 updates", or what kAllPoints is in words.
std::string trials_text(int64_t max_trials, int64_t max_steps);

/// @param max_trials  kAllPoints for a grid without an end
/// @param max_steps   updates of a whole trial
std::unique_ptr<Scheduler> make_scheduler(const MethodChoice& method, int64_t max_trials,
                                          int64_t max_steps);

}  // namespace stretto::search
