#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "models/misfits.h"

namespace stretto::experiment {

/// Data and model must agree on the number of sources: two encoders need a second source beside
/// each input, and one encoder reads none. That there are two encoders, and that they fit, is
/// checked by models/misfits.h.
std::vector<models::Misfit> two_source_problems(const Experiment& experiment);

}  // namespace stretto::experiment
