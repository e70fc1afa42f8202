#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "optim/optim_options.h"
#include "train/train_options.h"

namespace stretto::train {

/// What a number of micro-batches is: theirs, or one that they do not exceed.
enum class NumBatches : uint8_t { kExact, kAtMost };

/// Updates after which a run ends, as far as train.max_steps and train.max_epochs tell; 0 = they do
/// not. Updates that are skipped count among those of an epoch.
/// @param num_batches  micro-batches of an epoch, alike on all ranks
int64_t planned_updates(const TrainOptions& train, int64_t num_batches);

/// How many updates the schedule of a run is made for: where it ends, and what its warm-up is a
/// share of (schedule.warmup_ratio).
///
/// That is schedule.total_steps; without it train.max_steps; without either the updates of
/// train.max_epochs, of which an epoch has ceil(micro-batches / train.update_freq). The last are
/// counted when a run begins, and checkpoints keep the number: a resume goes on along the same
/// curve, whatever has become of the data. Updates that are skipped belong to their epoch, so that
/// a run of epochs ends as many updates before its schedule does.
class ScheduleEnd {
 public:
  /// @param num_batches  micro-batches of an epoch, alike on all ranks
  ScheduleEnd(const optim::ScheduleOptions& schedule, const TrainOptions& train,
              int64_t num_batches);

  /// 0 = no update is the last; then no schedule asks.
  int64_t updates() const { return updates_; }

  /// What a checkpoint keeps; empty where the configuration alone tells the number.
  std::map<std::string, double> state() const;
  /// Takes over the number of a run of as many epochs. With other epochs (`--extend`) the new
  /// number stands.
  void restore(const std::map<std::string, double>& state);

  /// Throws Error(kUsage) where epochs make too few updates for the parts of the schedule; of
  /// other lengths the rules tell it (experiment/rules.h). `check` asks with the most micro-batches
  /// that the data can make: more of them never leave less room.
  void require_room(NumBatches given = NumBatches::kExact) const;

  /// "cosine over 1,236 updates (3 epochs), of which 124 are warm-up"; empty where the
  /// configuration says as much.
  std::string text() const;

 private:
  const optim::ScheduleOptions schedule_;
  int64_t epochs_ = 0;  ///< 0 = the number does not come from epochs
  int64_t updates_ = 0;
};

}  // namespace stretto::train
