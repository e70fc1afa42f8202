#pragma once

#include "experiment/experiment.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// Trains or loads the tokenizers that an experiment names, reading training text when it must.
/// Throws as text::make_tokenizers() and data::open_lines() do.
text::TokenizerPair make_experiment_tokenizers(const Experiment& experiment);

}  // namespace stretto::experiment
