#pragma once

#include "experiment/family_plan.h"
#include "models/seq2seq_options.h"

namespace stretto::experiment {

/// What `stretto plan` asks of translation; sizes are a tasks::TranslationSizes.
FamilyPlan translation_plan();

/// The gradients of the tables of a model with two sides.
TableGradients table_gradients(const models::Seq2SeqOptions& model, const TableRows& rows,
                               bool rows_apart);

}  // namespace stretto::experiment
