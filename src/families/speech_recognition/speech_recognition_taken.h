#pragma once

#include <string>
#include <vector>

#include "experiment/taken_values.h"
#include "experiment/task_rules.h"

/// `train.init_from` of models of speech.
namespace stretto::experiment {

/// TaskRules::values_of_other_model: the keys of `[model]` and of `[features]`, where `own` states
/// no other kind of model and no other preset.
std::vector<TakenValue> speech_values_of(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given);

/// TaskRules::hidden_differences: of `[model]`, and of the numbers that sounds become.
std::vector<ModelDifference> speech_differences(const Experiment& theirs, const Experiment& own);

}  // namespace stretto::experiment
