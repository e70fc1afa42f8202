#pragma once

#include <cstdint>
#include <string>

#include "experiment/family_plan.h"
#include "models/bert_options.h"
#include "models/causal_options.h"

/// What can be changed of models, for FamilyPlan::shape. Other families than those of text have
/// stacks of the same kind.
namespace stretto::experiment {

/// Adds a key where its value is above 0. The multiple is kept as far as the value has it.
void add_width(ModelShape& shape, const std::string& key, int64_t value, int64_t multiple);
void add_depth(ModelShape& shape, const std::string& key, int64_t value, int64_t least = 1);

/// A stack of attention layers, whose sizes are model.num_layers, model.d_model and model.ffn_dim.
ModelShape shape_of_layers(int64_t num_layers, int64_t d_model, int64_t num_heads, int64_t ffn_dim);
ModelShape shape_of_model(const models::BertOptions& model);
ModelShape shape_of_model(const models::CausalModelOptions& model);

}  // namespace stretto::experiment
