#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/task_rules.h"

namespace stretto::experiment {

/// TaskRules::hidden_differences of translation. An encoder or decoder is compared with each part
/// whose tensors it takes: heads by their names, in any order, and `encoders.1` with `encoder` if
/// `train.init_only` says so.
std::vector<ModelDifference> translation_differences(const Experiment& theirs,
                                                     const Experiment& own,
                                                     const std::vector<std::string>& stored);

}  // namespace stretto::experiment
