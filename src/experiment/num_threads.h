#pragma once

#include <cstdint>

#include "experiment/experiment.h"

namespace stretto::experiment {

/// Threads that a process of this experiment works with: `run.threads`, else one for each core that
/// it may use. The result of no computation depends on it.
int64_t num_threads(const Experiment& experiment);

}  // namespace stretto::experiment
