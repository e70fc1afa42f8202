#include "train/schedule_end.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::train {
namespace {

// A double of a checkpoint holds every number up to here.
constexpr int64_t kMostUpdates = int64_t{1} << 53;

int64_t updates_of(int64_t epochs, int64_t num_batches, int64_t update_freq) {
  const int64_t of_one = std::max<int64_t>(1, (num_batches - 1) / update_freq + 1);
  return epochs > kMostUpdates / of_one ? kMostUpdates : epochs * of_one;
}

}  // namespace

int64_t planned_updates(const TrainOptions& train, int64_t num_batches) {
  const int64_t steps = train.max_steps;
  if (train.max_epochs == 0) return steps;
  const int64_t of_epochs = updates_of(train.max_epochs, num_batches, train.update_freq);
  return steps > 0 ? std::min(steps, of_epochs) : of_epochs;
}

ScheduleEnd::ScheduleEnd(const optim::ScheduleOptions& schedule, const TrainOptions& train,
                         int64_t num_batches)
    : schedule_(schedule), updates_(schedule.length(train.max_steps)) {
  if (updates_ > 0 || train.max_epochs == 0 || !schedule.needs_length()) return;
  epochs_ = train.max_epochs;
  updates_ = updates_of(epochs_, num_batches, train.update_freq);
}

std::map<std::string, double> ScheduleEnd::state() const {
  if (epochs_ == 0) return {};
  return {{"epochs", static_cast<double>(epochs_)}, {"updates", static_cast<double>(updates_)}};
}

void ScheduleEnd::restore(const std::map<std::string, double>& state) {
  const auto epochs = state.find("epochs"), updates = state.find("updates");
  if (epochs_ == 0 || epochs == state.end() || updates == state.end()) return;
  if (epochs->second == static_cast<double>(epochs_)) {
    updates_ = static_cast<int64_t>(updates->second);
  }
}

void ScheduleEnd::require_room(NumBatches given) const {
  if (epochs_ == 0 || !schedule_.decays_to_an_end()) return;
  const int64_t begin = schedule_.decay_begin(updates_);
  if (updates_ > begin) return;
  const std::string epochs = counted(epochs_, "epoch", "epochs");
  const std::string end =
      given == NumBatches::kExact
          ? " and end at " + with_thousands(updates_) + ", the last of " + epochs
          : ", and " + epochs + " of this data " + (epochs_ == 1 ? "has" : "have") + " at most " +
                counted(updates_, "update");
  throw Error(ExitCode::kUsage,
              "schedule.name: the decay of \"" + schedule_.name + "\" would begin at update " +
                  with_thousands(begin) + end,
              "shorten the warm-up (schedule.warmup_ratio = 0.1 follows the run), or raise "
              "train.max_epochs");
}

std::string ScheduleEnd::text() const {
  if (epochs_ == 0 && schedule_.warmup_ratio <= 0) return "";
  return schedule_.name + " over " + counted(updates_, "update") +
         (epochs_ > 0 ? " (" + counted(epochs_, "epoch", "epochs") + ")" : "") + ", of which " +
         with_thousands(schedule_.warmup_updates(updates_)) + " are warm-up";
}

}  // namespace stretto::train
