#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/signals.h"
#include "data/corpus.h"
#include "optim/arena.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/checkpointer.h"
#include "train/run_observer.h"
#include "train/run_options.h"
#include "train/task.h"
#include "train/train_options.h"

namespace stretto::train {

/// Everything a run of training is given beside its task.
struct TrainerSetup {
  RunOptions run;
  TrainOptions train;
  EvalOptions eval;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  report::ReportOptions report;
  int64_t prefetch = 8;
  std::filesystem::path run_directory;
  RunIdentity identity;
  RunDescription description;
};

/// The training loop: micro-batches, updates, validation, checkpoints, stops.
///
/// It names no model and no loss. An update sums the gradients of `train.update_freq`
/// micro-batches, divides by their true number of target tokens, clips, and steps; the last update
/// of an epoch may have fewer micro-batches, since an update never crosses an epoch. With the same
/// configuration on a CPU the weights after any sequence of kills and resumes equal those of an
/// undisturbed run bit for bit.
class Trainer {
 public:
  Trainer(Task& task, TrainerSetup setup);
  ~Trainer();

  /// Trains until a stop condition, a signal or an error.
  /// @return kOk when done, kInterrupted after a signal (saved), kIo when the last save failed
  ExitCode run();

 private:
  struct UpdateResult;
  UpdateResult update();
  void record(const UpdateResult& result);
  void validate();
  bool validation_due() const;
  bool save_due() const;
  void save();
  void average();
  std::optional<std::string> stop_reason() const;
  ExitCode leave_interrupted();
  ExitCode finish(const std::string& reason);
  int64_t schedule_steps() const;
  double eta_seconds() const;

  Task& task_;
  TrainerSetup setup_;
  optim::Arena arena_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Checkpointer checkpointer_;
  TrainState state_;
  std::unique_ptr<RunObserver> observer_;
  std::unique_ptr<data::Prefetcher> batches_;
  StopSignals signals_;
  int64_t saved_step_ = 0;
  double window_seconds_ = 0;   // training time since the last `train` event
  int64_t window_tokens_ = 0;   // target tokens since then
  double session_seconds_ = 0;  // training time of this process
  int64_t session_updates_ = 0;
};

}  // namespace stretto::train
