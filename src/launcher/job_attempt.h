#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/signals.h"
#include "distributed/rank_report.h"
#include "launcher/job_folder.h"
#include "launcher/local_job.h"
#include "launcher/noise_filter.h"

namespace stretto::launcher {

/// One start of a job on this machine, from mpirun's start to the end of the last of its ranks.
///
/// A rank is known by its report, or, before it could write one, by its process. One that died is
/// noticed by its process too, so that the others, which may wait for it in MPI's own start and for
/// ever, are ended 3 s later; once the group stands they notice themselves and have 10 s to leave.
/// When all that are left are stopped, they are ended at once.
/// When the group does not stand within `join_seconds`, those that did not come are named.
/// When all ranks have said how they end, mpirun has 10 s to end too, a stopped one 1 s: then it is
/// woken up, and 3 s later ended by force.
class JobAttempt {
 public:
  /// @param facts  of mpirun: its path, and its guard; the rest is this object's to fill in
  JobAttempt(const LocalJob& job, MpirunFacts facts, const StopSignals& signals);

  /// Waits for the end; one report for each rank once anything has begun.
  std::vector<distributed::RankReport> run();
  int mpirun_code() const { return code_; }
  bool was_stopped() const { return forwarded_; }
  /// What mpirun said about itself, which is not shown.
  const std::string& withheld() const { return noise_.withheld(); }

 private:
  using Clock = std::chrono::steady_clock;

  void pass_on(std::chrono::milliseconds wait);
  bool mpirun_ends_within(std::chrono::milliseconds time);
  std::map<int, int64_t> living_ranks() const;
  void forward_signal();
  void look();
  void look_for_silent(const std::vector<distributed::RankReport>& reports);
  void give_up_joining(const std::vector<distributed::RankReport>& reports);
  void note_death(int rank);
  bool only_stopped_are_left();
  bool outlives_its_ranks();
  void end_mpirun();
  void end_by_force();
  void end_orphans();
  std::vector<distributed::RankReport> final_reports() const;

  const StopSignals& signals_;
  const int processes_;
  const Clock::duration join_limit_;
  const Clock::time_point began_ = Clock::now();
  JobFolder folder_;
  std::unique_ptr<JobFolder> shared_ = shared_memory_folder();
  ChildProcess mpirun_;
  NoiseFilter noise_;
  int code_ = 0;
  bool forwarded_ = false, ended_mpirun_ = false;
  double forwarded_at_ = 0;           ///< seconds since 1970
  std::set<int64_t> told_;            ///< pids that the signal went to
  Clock::time_point next_forward_{};  ///< to ranks that came later
  bool all_joined_ = false;
  std::optional<Clock::time_point> failed_at_;    ///< when the first failure was seen
  Clock::time_point next_search_{};               ///< for processes without a report
  Clock::time_point next_look_{};                 ///< whether the living are stopped
  int looks_at_stopped_ = 0;                      ///< in a row
  std::optional<Clock::time_point> all_ended_;    ///< when all ranks had said how they end
  Clock::time_point next_look_at_end_{};          ///< whether they have
  std::map<int, int64_t> seen_;                   ///< pids of ranks found before their reports
  std::map<int, Clock::time_point> absent_from_;  ///< ranks with neither process nor report
  std::map<int, double> died_;                    ///< times of deaths without a report
  std::vector<int> never_joined_;
  std::map<int, distributed::EndReason> end_reasons_;
};

}  // namespace stretto::launcher
