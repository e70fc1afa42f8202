#pragma once

#include <vector>

#include "experiment/preflight.h"

namespace stretto::experiment {

/// Looks at labelled files within the time that there is: columns, rows, and labels of the
/// validation files that the training files do not have.
Preflight text_classification_preflight(const Experiment& options,
                                        const std::vector<config::Problem>& known,
                                        const PreflightOptions& how);

}  // namespace stretto::experiment
