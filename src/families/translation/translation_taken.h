#pragma once

#include <vector>

#include "config/problem.h"
#include "experiment/other_model.h"

namespace stretto::experiment {

/// TaskRules::values_of_other_model of translation. Without `train.init_only` a model takes over
/// the parts of the other one, and their kinds and number with them, unless it states its own. With
/// it, a part takes the keys of the part from which it takes tensors, and keys of all parts are
/// taken if any tensor is.
std::vector<TakenValue> translation_values_of(const OtherModel& other, const Experiment& own,
                                              const config::Origins& given);

}  // namespace stretto::experiment
