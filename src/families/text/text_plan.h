#pragma once

#include "experiment/family_plan.h"
#include "models/bert_options.h"

namespace stretto::experiment {

/// What `stretto plan` asks of every task on encoded texts (EncoderRules); sizes are a
/// tasks::TextSizes.
FamilyPlan text_plan();

/// The gradients of the table of an encoder of text, whose lookups are ready at the end.
/// @param has_output  whether the model predicts tokens: its output projection is a table of its
///                    own, or the same
TableGradients text_table_gradients(const models::BertOptions& model, int64_t rows, bool has_output,
                                    bool rows_apart);

}  // namespace stretto::experiment
