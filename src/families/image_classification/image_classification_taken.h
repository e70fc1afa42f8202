#pragma once

#include <string>
#include <vector>

#include "experiment/taken_values.h"
#include "experiment/task_rules.h"

/// `train.init_from` of models of pictures.
namespace stretto::experiment {

/// TaskRules::values_of_other_model: the keys of `[model]`, and how its pixels were normalised,
/// where `own` states no other kind of model and no other preset.
std::vector<TakenValue> image_values_of(const OtherModel& other, const Experiment& own,
                                        const config::Origins& given);

/// TaskRules::hidden_differences: of `[model]`, and of the numbers that pixels become.
std::vector<ModelDifference> image_differences(const Experiment& theirs, const Experiment& own);

}  // namespace stretto::experiment
