#pragma once

#include <cstdint>

#include "data/batch_source.h"
#include "experiment/experiment.h"

/// A micro-batch of one picture, which batch norm cannot normalise; no libtorch.
namespace stretto::experiment {

/// Whether the model has batch norms that learn. With frozen norms, which patterns may name, one
/// picture is as good as many.
bool has_learning_batch_norm(const Experiment& experiment);

/// Throws Error(kUsage) where the last micro-batch of an epoch has one picture, which batch norm
/// normalises alone. With dist.batch_norm = "all" it may be normalised together with those of the
/// other processes; what is left over at the end of an update is not
/// (parallel/running_statistics.h).
/// @param processes  that train together; 0 = not known
void require_no_lone_picture(const Experiment& experiment, const data::BatchSource& batches,
                             int64_t pictures, int64_t processes);

}  // namespace stretto::experiment
