#pragma once

#include <functional>
#include <string>

#include "distributed/process_group.h"
#include "runs/checkpointer.h"
#include "runs/train_state.h"
#include "train/forensics/forensics_options.h"
#include "train/forensics/nonfinite_policy.h"
#include "train/forensics/spikes.h"
#include "train/forensics/update_forensics.h"
#include "train/train_step.h"
#include "train/updater.h"

namespace stretto::train {

/// What failed updates are judged by, and how they are examined.
struct FailurePolicySetup {
  ForensicsOptions options;
  UpdateForensicsSetup forensics;
  /// Told what goes on beside training, and "" when that has ended; empty: nobody asks.
  std::function<void(const std::string&)> activity = {};
};

/// What a training loop does about updates that fail or look odd: `train.forensics`.
///
/// It asks the decisions that are pure (NonfinitePolicy, SpikeDetector), has failed updates
/// examined (UpdateForensics), and sends the run back to a checkpoint. All ranks call it with the
/// same values and so agree.
class FailurePolicy {
 public:
  /// What follows a failed step, when the run does not end.
  struct Verdict {
    bool rolls_back = false;  ///< call roll_back()
    std::string report;       ///< path of what was found; empty = none was written
  };

  /// The references must outlive it.
  FailurePolicy(Task& task, optim::Arena& arena, Updater& updater, distributed::ProcessGroup group,
                FailurePolicySetup setup);

  /// The learning rate is multiplied by it, since the run went back.
  double lr_factor() const { return nonfinite_.lr_factor(); }

  /// After each update that was finite, before its step.
  /// @param loss  as it is shown
  SpikeVerdict finite(double loss, double grad_norm);
  /// After each update, finite or not.
  void note_scale(double loss_scale) { forensics_.note_scale(loss_scale); }

  /// After each step whose update was not finite, when it is recorded. Collective.
  /// Throws Error(kNumeric) where the run ends, with what to try.
  Verdict failed(const TrainStep& step, const runs::TrainState& state);

  /// Goes back to a checkpoint that finite updates followed, and gives up those after it. Counters
  /// and data order are then the checkpoint's; this policy and the loss scaler keep what they have
  /// learned, since the checkpoint's scale would overflow again. Collective.
  /// Throws Error(kNumeric) when there is no checkpoint to go back to.
  /// @param report   Verdict::report
  /// @param restore  restores the newest checkpoint into `state` and all parts of the run; false:
  ///                 there is none
  void roll_back(const std::string& report, runs::TrainState& state,
                 runs::Checkpointer& checkpointer, const std::function<bool()>& restore);

  /// Adds what a resumed run needs to a checkpoint's state.
  void save(runs::TrainState& state) const;
  /// What is missing in `state` stays as it is.
  void restore(const runs::TrainState& state);

 private:
  std::string examine(const TrainStep& step, const runs::TrainState& state);
  int64_t rollback_target(const runs::TrainState& state, runs::Checkpointer& checkpointer);

  Updater& updater_;
  distributed::ProcessGroup group_;
  NonfinitePolicy nonfinite_;
  SpikeDetector spikes_;
  UpdateForensics forensics_;
  std::function<void(const std::string&)> activity_;
};

}  // namespace stretto::train
