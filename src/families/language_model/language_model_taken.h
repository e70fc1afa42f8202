#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/other_model.h"
#include "experiment/task_rules.h"

/// `train.init_from` of a language model.
namespace stretto::experiment {

/// TaskRules::values_of_other_model: the keys of a language model's stack, and of its tables.
/// @param given  which keys `own` states
std::vector<TakenValue> language_model_values_of(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given);

/// TaskRules::hidden_differences of two language models; none with a run of another family.
std::vector<ModelDifference> language_model_differences(const Experiment& theirs,
                                                        const Experiment& own,
                                                        const std::vector<std::string>& stored);

}  // namespace stretto::experiment
