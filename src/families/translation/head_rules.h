#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "models/option_conflicts.h"

namespace stretto::experiment {

/// What is wrong with the names of `model.heads`, with `data.heads` beside them, and with keys that
/// a model with several decoders does not read. Whether the decoders themselves fit: see
/// models/option_conflicts.h; whether their text does: check_rules().
std::vector<models::OptionConflict> head_problems(const Experiment& experiment);

}  // namespace stretto::experiment
