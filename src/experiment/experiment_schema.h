#pragma once

#include "config/schema.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// All keys of an experiment, with the names that other toolkits give them. It points into
/// `options`.
config::Schema experiment_schema(Experiment& options);

/// The same of an experiment that has every default, but the parts and the numbers of entries that
/// `present` has: what messages and comparisons read. It points into `fallback`.
config::Schema defaults_beside(const config::Schema& present, Experiment& fallback);

}  // namespace stretto::experiment
