#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "models/misfits.h"

namespace stretto::experiment {

/// What is wrong with the names of `model.heads`, with `data.heads` beside them, and with keys that
/// a model with several decoders does not read. Whether the decoders themselves fit: see
/// models/misfits.h; whether their text does: check_rules().
std::vector<models::Misfit> head_problems(const Experiment& experiment);

}  // namespace stretto::experiment
