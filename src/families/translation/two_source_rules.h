#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "models/option_conflicts.h"

namespace stretto::experiment {

/// Data and model must agree on the number of sources: two encoders need a second source beside
/// each input, and one encoder reads none. That there are two encoders, and that they fit, is
/// checked by models/option_conflicts.h.
std::vector<models::OptionConflict> two_source_problems(const Experiment& experiment);

}  // namespace stretto::experiment
