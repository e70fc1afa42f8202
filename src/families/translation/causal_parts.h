#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/other_model.h"
#include "experiment/task_rules.h"

/// `train.init_from` of translation where the run is a language model. `train.init_only` says which
/// parts begin with its layers, "decoder.*" or "encoder.* = decoder.*": self-attention,
/// feed-forward parts, norms, positions and the table of tokens have the same names in a decoder
/// without memory. What attends to an encoder begins anew. Recurrent layers fit where the first one
/// alone attends (models::LstmDecoderOptions::context_to), and all have the same width.
namespace stretto::experiment {

/// TaskRules::values_of_other_model: a single encoder or decoder that takes layers has their kind
/// and sizes, and the model their width; of a Transformer also norms, activation and positions, as
/// far as layers of translation know them. Dropouts are its own.
/// @param given  which keys `own` states
std::vector<TakenValue> values_of_language_model(const OtherModel& other, const Experiment& own,
                                                 const config::Origins& given);

/// TaskRules::hidden_differences: what shapes do not show of the parts that take layers, and forms
/// of layers that a translation model does not have. Without `train.init_only`, that the run has
/// another task. Nothing for runs that are no language models.
std::vector<ModelDifference> differences_of_language_model(const Experiment& theirs,
                                                           const Experiment& own,
                                                           const std::vector<std::string>& stored);

}  // namespace stretto::experiment
