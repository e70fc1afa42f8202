#pragma once

#include "config/schema.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// All keys of an experiment, with the names that other toolkits give them. It points into
/// `options`.
config::Schema experiment_schema(Experiment& options);

/// The same of an experiment that has every default, made once: what messages and comparisons read.
const config::Schema& default_schema();

}  // namespace stretto::experiment
