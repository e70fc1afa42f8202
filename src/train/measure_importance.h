#pragma once

#include <cstdint>

#include "compress/stack_parts.h"
#include "optim/arena.h"
#include "train/task.h"

namespace stretto::train {

/// Adds how much the loss of training depends on the parts of a model
/// (compress::PartImportance::add_gradients), over the first micro-batches of the first epoch, as
/// an update sees them but for batch norms, which use their running statistics. The gradients of
/// the arena are zero afterwards, and the model is in eval mode.
///
/// @param micro_batches  as many as there are, at most
void measure_importance(Task& task, optim::Arena& arena, int64_t micro_batches,
                        compress::PartImportance& importance);

}  // namespace stretto::train
