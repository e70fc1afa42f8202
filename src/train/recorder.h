#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "report/metrics_log.h"
#include "report/report_options.h"
#include "runs/checkpointer.h"
#include "runs/train_state.h"
#include "train/run_observer.h"
#include "train/stop_conditions.h"
#include "train/task.h"
#include "train/throughput.h"
#include "train/train_step.h"

namespace stretto::train {

/// Where a run is recorded, and what is told beside its numbers.
struct RecorderSetup {
  std::filesystem::path run_directory;
  report::ReportOptions report;
  RunDescription description;
  /// Notes of the data for metrics.jsonl, an event `data` each: of samples that were left out, of
  /// files that changed. Asked whenever training goes on from a step, that of a rollback too; the
  /// answer has all notes of that step. Empty = there are none.
  std::function<std::vector<std::string>(int64_t step)> notes_at = {};
  int64_t every = 1;        ///< steps between two records
  int64_t num_batches = 0;  ///< micro-batches of an epoch
  int64_t num_processes = 1;
};

/// Why a process leaves a run that goes on later.
enum class LeftBy : uint8_t { kSignal, kUntil };

/// The records of a run: a line of metrics.jsonl, the line of progress, the report and the log for
/// each step, validation and end.
///
/// Rank 0 writes; the recorders of the other ranks do nothing. metrics.jsonl must be written: its
/// failure is thrown (RunObserver).
class Recorder {
 public:
  /// Task and arena must outlive it.
  Recorder(const Task& task, const optim::Arena& arena, const StopConditions& stops,
           RecorderSetup setup, bool is_root);

  /// What only the beginning of a run tells, for the page and the log. Before open().
  void fact(const std::string& name, const std::string& text);

  /// Begins, or begins again after a rollback: what stands there of later steps is cut away.
  void open(const runs::TrainState& state);

  /// A word about what is going on beside training: "saving"; empty = training.
  void activity(const std::string& what);

  /// After each step. metrics.jsonl has the first step and every `every`-th, by the step alone, so
  /// that a resumed run has the points of an undisturbed one; others only with a note or skipped.
  void step(const TrainStep& step, const runs::TrainState& state);
  /// @param sparsity  of the weights that were validated, if any is pruned
  void validation(const Validation& validation, const runs::TrainState& state, bool is_best,
                  std::optional<double> sparsity = std::nullopt);

  /// The run has ended. @param saving  what checkpoints have cost
  void end(const runs::TrainState& state, const std::string& reason, const runs::SaveStats& saving);
  /// This process leaves a run that goes on later.
  /// @param saved  whether the last checkpoint was written
  void leave(const runs::TrainState& state, LeftBy by, bool saved);

  /// For the next checkpoint; nullopt on other ranks than 0.
  std::optional<report::MetricsMark> metrics_mark() const;

 private:
  void notes(const runs::TrainState& state);
  void progress(const TrainStep& step, const runs::TrainState& state);
  void train_event(const TrainStep& step, const runs::TrainState& state);
  void set_memory(report::MetricsEvent& event) const;
  void tell_of_skips(const runs::TrainState& state) const;
  bool is_scheduled(int64_t step) const { return step == 1 || step % setup_.every == 0; }

  const Task& task_;
  const optim::Arena& arena_;
  StopConditions stops_;
  RecorderSetup setup_;
  bool is_root_;
  std::unique_ptr<RunObserver> observer_;  // rank 0, from open() on
  Throughput throughput_;
};

}  // namespace stretto::train
