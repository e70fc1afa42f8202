#pragma once

#include <cstdint>

#include "train/task.h"

namespace stretto::train {

/// What makes the samples of a micro-batch belong together.
enum class TiedBy : uint8_t {
  kNothing,
  kBatchNorm,  ///< its statistics are those of the whole micro-batch; frozen layers tie nothing
  kCarry,      ///< a state that its lanes take to the next update (Task::carry())
};

/// The one rule for both: a micro-batch of tied samples is neither cut among processes nor split
/// for lack of memory, and none of its samples is run alone. `experiment::may_cut_micro_batches`
/// tells the same of a configuration, without a look at frozen layers.
TiedBy samples_tied_by(Task& task);

/// Why a micro-batch is not split, behind "since".
const char* reason_of(TiedBy tied);

}  // namespace stretto::train
