#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "distributed/process_group.h"
#include "kernels/compute.h"
#include "optim/arena.h"
#include "runs/checkpointer.h"
#include "train/forensics/forensics_report.h"
#include "train/task.h"
#include "train/updater.h"

namespace stretto::train {

/// Where and under what names an update is examined.
struct UpdateForensicsSetup {
  std::filesystem::path run_directory;
  runs::RunIdentity identity;
  kernels::Compute compute = kernels::Compute::kFp32;
  std::string compress;     ///< dist.compress
  double clip_norm = 0;     ///< optim.clip_norm
  bool rolls_back = false;  ///< see AdviceContext
};

/// An update that was not finite, as the training loop knows it.
struct FailedAttempt {
  const UpdateResult& update;
  int64_t step = 0;       ///< as metrics.jsonl counts it
  double lr = 0;          ///< that it would have been made with
  int64_t good_step = 0;  ///< of the newest checkpoint that a finite update followed; 0 = none
};

/// What a training loop does to explain an update that was not finite: it remembers the loss
/// scales, has every rank examine its micro-batches (train/forensics/forensics.h), adds what it
/// knows, and has rank 0 write the reports (train/forensics/rank_reports.h).
class UpdateForensics {
 public:
  /// The references must outlive it.
  UpdateForensics(Task& task, optim::Arena& arena, Updater& updater,
                  distributed::ProcessGroup group, UpdateForensicsSetup setup);

  /// After each update, finite or not.
  void note_scale(double loss_scale);
  /// The loss scales of the last updates, oldest first; at most 100.
  const std::vector<double>& loss_scales() const { return loss_scales_; }
  void restore(std::vector<double> loss_scales) { loss_scales_ = std::move(loss_scales); }

  /// Collective, before the arena's gradients are cleared or the weights change.
  /// @return path of the lowest rank's report, the same on all ranks; "" when none was written
  std::string examine(const FailedAttempt& failed);

  /// What to do about the loss scale, or the precision, of an update whose loss was finite; empty =
  /// nothing.
  /// @param scaler_says  its own advice, which then stands in front; empty = it has none
  std::string advice_on_scale(const UpdateResult& update,
                              const std::string& scaler_says = {}) const;

  /// As advice must know them, now.
  /// @param good_step  see FailedAttempt
  AdviceContext advice_context(int64_t good_step) const;

 private:
  std::string overflowed_sum() const;
  UpdateRecord record_of(const FailedAttempt& failed) const;

  Task& task_;
  optim::Arena& arena_;
  Updater& updater_;
  distributed::ProcessGroup group_;
  UpdateForensicsSetup setup_;
  std::vector<double> loss_scales_;
};

}  // namespace stretto::train
