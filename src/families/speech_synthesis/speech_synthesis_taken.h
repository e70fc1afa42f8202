#pragma once

#include <string>
#include <vector>

#include "experiment/taken_values.h"
#include "experiment/task_rules.h"

/// `train.init_from` of models that speak.
namespace stretto::experiment {

/// TaskRules::values_of_other_model: the keys of `[model]`, and of the frames that the other model
/// writes, where `own` states no other kind of model.
std::vector<TakenValue> synthesis_values_of(const OtherModel& other, const Experiment& own,
                                            const config::Origins& given);

/// TaskRules::hidden_differences: of `[model]`, and of what frames are.
std::vector<ModelDifference> synthesis_differences(const Experiment& theirs, const Experiment& own);

}  // namespace stretto::experiment
