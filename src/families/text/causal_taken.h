#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/taken_values.h"
#include "experiment/task_rules.h"

/// `train.init_from` of a task on encoded texts, where a model is the stack of a language model
/// (TextRules::causal_stack): a run of a language model, or of such a classifier. Tensors have the
/// same names in both, `decoder.…`, so that each begins with that of its name.
namespace stretto::experiment {

/// TaskRules::values_of_other_model for an other model with such a stack: `model.name` and the
/// keys of the stack. What the head has comes from a classifier alone. Nothing for a family that
/// takes no such stack (EncoderRules::takes_causal_stacks).
/// @param given  which keys `own` states
std::vector<TakenValue> causal_values_of(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given);

/// TaskRules::hidden_differences where one of the two has such a stack, or both.
std::vector<ModelDifference> causal_differences(const Experiment& theirs, const Experiment& own,
                                                const std::vector<std::string>& stored);

}  // namespace stretto::experiment
