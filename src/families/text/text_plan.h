#pragma once

#include <cstdint>
#include <optional>

#include "experiment/experiment.h"
#include "experiment/family_plan.h"
#include "models/bert_options.h"

namespace stretto::experiment {

/// What `stretto plan` asks of every task on encoded texts (EncoderRules); sizes are a
/// tasks::TextSizes.
FamilyPlan text_plan();

/// Ids of the tokenizer of characters or words that training makes of its text. Nothing for other
/// kinds, and for a tokenizer that is named or another run's; nor where the text cannot be read or
/// has more than kMostPlannedBytes.
std::optional<int64_t> ids_of_text(const Experiment& experiment);
inline constexpr int64_t kMostPlannedBytes = int64_t{32} << 20;  ///< some tenths of a second

/// The gradients of the table of an encoder of text, whose lookups are ready at the end.
/// @param has_output  whether the model predicts tokens: its output projection is a table of its
///                    own, or the same
TableGradients text_table_gradients(const models::BertOptions& model, int64_t rows, bool has_output,
                                    bool rows_apart);

}  // namespace stretto::experiment
