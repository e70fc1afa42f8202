#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stretto::experiment {

/// A rule that is broken.
struct SourceProblem {
  std::vector<std::string> keys;  ///< what the rule reads; the first one is blamed
  std::string what, hint;
};

/// Data and model must agree on the number of sources: two encoders need a second source beside
/// each input, and one encoder reads none. That there are two encoders, and that they fit, is
/// checked by models/misfits.h.
std::vector<SourceProblem> two_source_problems(const Experiment& experiment);

}  // namespace stretto::experiment
