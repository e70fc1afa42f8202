#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/model_comparison.h"
#include "experiment/taken_values.h"
#include "experiment/task_rules.h"
#include "models/causal_options.h"

/// `train.init_from` of a task on encoded texts, where a model is the stack of a language model
/// (TextRules::causal_stack): a run of a language model, or of such a classifier. Tensors have the
/// same names in both, `decoder.…`, so that each begins with that of its name. A language model
/// that begins with another one takes the same.
namespace stretto::experiment {

/// TaskRules::values_of_other_model for an other model with such a stack: `model.name` and the
/// keys of the stack. What the head has comes from a classifier alone.
/// @param given  which keys `own` states
std::vector<TakenValue> causal_values_of(const OtherModel& other, const Experiment& own,
                                         const config::Origins& given);

/// Compares the kinds of two stacks and what shapes of tensors hide: of adapters where both have
/// them, and of an adaptive softmax where its matrices are taken.
void compare_stacks(const models::CausalModelOptions& theirs, const models::CausalModelOptions& own,
                    bool takes_output, ModelComparison& pair);

/// TaskRules::hidden_differences where one of the two has such a stack, or both.
std::vector<ModelDifference> causal_differences(const Experiment& theirs, const Experiment& own,
                                                const std::vector<std::string>& stored);

}  // namespace stretto::experiment
