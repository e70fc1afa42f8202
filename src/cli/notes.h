#pragma once

#include "config/problem.h"
#include "experiment/load_experiment.h"

namespace stretto::cli {

/// Says on stderr, a warning each, which keys and values somebody gave by names that they had.
void tell_notes(const config::Origins& origins);

/// Says on stderr, a warning each, which keys somebody gave that nothing reads: `check` notes them
/// among others, and training is the last moment at which they can be mended.
void tell_unread_keys(const experiment::LoadedExperiment& experiment);

}  // namespace stretto::cli
