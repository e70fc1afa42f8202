#pragma once

#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// What is allowed but seldom meant: no validation text, validations that never happen, a schedule
/// that ends before the run. For `stretto check`; nothing here stops a training.
std::vector<config::Problem> advise(const Experiment& options, const config::Origins& origins);

}  // namespace stretto::experiment
