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
#include "compress/compress_options.h"
#include "compress/masks.h"
#include "optim/arena.h"
#include "optim/schedule.h"
#include "runs/checkpointer.h"
#include "runs/initial_weights.h"
#include "train/failure_policy.h"
#include "train/recorder.h"
#include "train/schedule_end.h"
#include "train/stop_conditions.h"
#include "train/task.h"
#include "train/train_step.h"
#include "train/updater.h"
#include "train/validator.h"

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
  data::Loading loading = {};
  compress::CompressOptions compress = {};
  int64_t batch_size = 0;   ///< of an update, for optim.lr_scaling: the bound of its micro-batches
  int64_t model_width = 0;  ///< for the schedule noam; 0 = the model has none
  std::filesystem::path run_directory;
  runs::RunIdentity identity;
  RunDescription description;
  /// Opens what train.init_from names, when there is no checkpoint to go on from; empty: a run's.
  std::function<runs::InitialRun()> open_initial_run = {};
  /// Matches the tables of train.init_vocabulary = "match"; empty: all rows are taken.
  runs::MatchTables match_tables = {};
  /// Updates after which this process validates, saves and leaves with kOk, though the run is not
  /// at its end: neither the run nor its schedule knows of it. 0 = it trains to the end.
  int64_t until = 0;
  /// Asked on rank 0 alone; see RecorderSetup.
  std::function<std::vector<std::string>(int64_t step)> notes_at = {};
  /// From the trainer's construction to the end of the process. False where the caller handles
  /// signals, or where several trainers share a process.
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
  bool restore();
  compress::PackedMasks initialise();
  void restore_masks(const compress::PackedMasks& masks);
  void restore_parts();
  void restore_scaler();
  void keep_parts();
  TrainStep step();
  void scaled(TrainStep& step);
  void roll_back(const std::string& report);
  void check_replicas();
  int local_stop() const;
  bool interrupted() const;
  void validate();
  bool save_due() const;
  void save();
  void average();
  std::optional<std::string> stop_reason() const;
  ExitCode leave_early(LeftBy by);
  ExitCode finish(const std::string& reason);
  double learning_rate() const;
  std::optional<double> sparsity() const;
  bool is_root() const { return group_.is_root(); }

  Task& task_;
  TrainerSetup setup_;
  distributed::ProcessGroup group_;
  optim::Arena arena_;
  Updater updater_;
  runs::Checkpointer checkpointer_;
  runs::TrainState state_;
  StopConditions stops_;
  ScheduleEnd schedule_end_;
  Recorder recorder_;
  Validator validator_;
  FailurePolicy failures_;
  std::optional<StopSignals> signals_;
  int agreed_stop_ = 0;     // of all ranks
  bool save_soon_ = false;  // at the next update that is not left out
  int64_t saved_step_ = 0, compared_step_ = 0;
  double grad_norm_ = 0;  // of the last update
};

}  // namespace stretto::train
