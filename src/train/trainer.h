#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/signals.h"
#include "optim/arena.h"
#include "optim/schedule.h"
#include "runs/checkpointer.h"
#include "runs/initial_weights.h"
#include "train/forensics/nonfinite_policy.h"
#include "train/forensics/spikes.h"
#include "train/forensics/update_forensics.h"
#include "train/run_observer.h"
#include "train/schedule_end.h"
#include "train/task.h"
#include "train/throughput.h"
#include "train/updater.h"

namespace stretto::train {

/// Everything a run of training is given beside its task.
struct TrainerSetup {
  RunOptions run;
  TrainOptions train;
  ValidationOptions eval;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  distributed::DistOptions dist;
  optim::Precision precision;
  optim::Precision validation_precision = {};
  report::ReportOptions report;
  int64_t prefetch = 8;
  int64_t batch_size = 0;   ///< of an update, for optim.lr_scaling: the bound of its micro-batches
  int64_t model_width = 0;  ///< for the schedule noam; 0 = the model has none
  std::filesystem::path run_directory;
  runs::RunIdentity identity;
  RunDescription description;
  /// Opens what train.init_from names, when there is no checkpoint to go on from; empty: a run's.
  std::function<runs::InitialRun()> open_initial_run = {};
  /// Of train.init_vocabulary = "match"; empty: all rows are taken.
  runs::MatchTables match_tables = {};
  /// Updates after which this process validates, saves and leaves with kOk, though the run is not
  /// at its end: neither the run nor its schedule knows of it. 0 = it trains to the end.
  int64_t until = 0;
  /// Rank 0, whenever training goes on from a step, that of a rollback too: what metrics.jsonl and
  /// the report are to say there.
  std::function<std::vector<std::string>(int64_t step)> notes_at = {};
  /// False where the caller handles signals, or where several trainers share a process.
  bool handle_signals = true;

  /// What train.init_from names.
  runs::InitialRun initial_run() const {
    return open_initial_run ? open_initial_run() : runs::open_initial_run(train.init_from);
  }
};

/// The training loop: updates, validation, checkpoints, stops.
///
/// A step is an attempt at an update. Intervals, names of checkpoints and dropout count steps;
/// train.max_steps, warm-up, schedule and optimizer count those that were not skipped. A schedule
/// without either number of updates is made for those of train.max_epochs (train/schedule_end.h).
///
/// It names no model and no loss. An update sums the gradients of `train.update_freq`
/// micro-batches, divides by their true weight (Task::weights), clips, and steps; the last update
/// of an epoch may have fewer micro-batches, since an update never crosses an epoch. With the same
/// configuration on a CPU the weights after any sequence of kills and resumes equal those of an
/// undisturbed run bit for bit.
///
/// With several processes all of them run the same loop and take the same decisions; rank 0 alone
/// reads and writes the run folder, but for reports of what was not finite, which come from the
/// ranks that find something. Every dist.check_every updates, and before each checkpoint, gradient
/// norms and weights are compared; run() throws Error(kNumeric) that names the rank which differs.
class Trainer {
 public:
  Trainer(Task& task, TrainerSetup setup, distributed::ProcessGroup group = {});
  ~Trainer();

  /// Trains until a stop condition, a signal or an error.
  /// @return kOk when done or as far as `until`, kInterrupted after a signal (saved), kIo when the
  ///         last save failed
  ExitCode run();

 private:
  /// One update as it is recorded.
  struct Recorded {
    UpdateResult update;
    double lr = 0;
    bool skipped = false;
    std::string note;
    std::optional<Error> scale_at_its_end;  ///< the loss scaler cannot go on
  };

  bool restore();
  void keep_parts();
  void restore_parts();
  void restore_scaler();
  void open_observer();
  void tell_notes();
  void tell_schedule();
  Recorded update();
  void record(const Recorded& done);
  void record_event(const Recorded& done);
  // By the step alone, so that a resumed run has the points of an undisturbed one. The first update
  // is where curves begin.
  bool is_scheduled_record() const { return state_.step == 1 || state_.step % report_every_ == 0; }
  void after_failed_update(const Recorded& done);
  std::string examine(const Recorded& done);
  void roll_back(const std::string& report);
  int64_t rollback_target();
  void check_replicas();
  int local_stop() const;
  bool interrupted() const;
  void validate();
  bool judge(const Validation& result);
  const Score& score_to_rank_by(const std::vector<Score>& scores) const;
  bool validation_due() const;
  bool start_is_due() const;
  bool save_due() const;
  void save();
  void average();
  void log_costs() const;
  void tell_of_skips() const;
  int64_t counted_updates() const {
    return state_.counts_attempts ? state_.step : state_.stepped();
  }
  std::optional<std::string> stop_reason() const;
  bool is_far_enough() const;
  ExitCode leave_early(const std::string& by, ExitCode code);
  ExitCode finish(const std::string& reason);
  double learning_rate() const;
  int64_t last_step() const;
  double eta_seconds() const;
  bool is_root() const { return group_.is_root(); }
  void activity(const std::string& what) {
    if (observer_) observer_->activity(what);
  }

  Task& task_;
  TrainerSetup setup_;
  distributed::ProcessGroup group_;
  optim::Arena arena_;
  Updater updater_;
  runs::Checkpointer checkpointer_;
  runs::TrainState state_;
  std::unique_ptr<RunObserver> observer_;  // rank 0 only
  UpdateForensics forensics_;
  NonfinitePolicy policy_;
  SpikeDetector spikes_;
  ScheduleEnd schedule_end_;
  int64_t report_every_;  // updates between two records
  optim::Plateau plateau_;
  std::optional<StopSignals> signals_;
  int agreed_stop_ = 0;           // of all ranks
  bool validated_start_ = false;  // eval.at_start, in this process
  bool save_soon_ = false;        // at the next update that is not left out
  int64_t saved_step_ = 0, compared_step_ = 0;
  double grad_norm_ = 0;  // of the last update
  Throughput throughput_;
};

}  // namespace stretto::train
