#pragma once

#include <string>
#include <vector>

#include "experiment/preflight.h"
#include "families/text/text_rules.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// The tokens of all texts, special ones included, as far as the time allows. Throws as
/// data::LabelledReader and text::TextEncoder do.
SeenTokens count_labelled_tokens(const Experiment& experiment,
                                 const std::vector<std::string>& files,
                                 const text::Tokenizer& tokenizer, const PreflightTimer& time);

/// Looks at labelled files within the time that there is: columns, rows, and labels of the
/// validation files that the training files do not have; a weight of each label.
Preflight text_classification_preflight(const Experiment& options,
                                        const std::vector<config::Problem>& known,
                                        const PreflightOptions& how);

}  // namespace stretto::experiment
