#pragma once

#include <vector>

#include "data/pairs/parallel_input.h"
#include "experiment/preflight.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// Looks at parallel text and tokenizers within the time that there is.
Preflight translation_preflight(const Experiment& options,
                                const std::vector<config::Problem>& known,
                                const PreflightOptions& how);

/// The part of it that the files alone show: whether lines of the text can be read, and are as many
/// on all sides; whether tokenizers that are named can be loaded.
Preflight look_at_text_files(const Experiment& options, const std::vector<config::Problem>& known,
                             const PreflightOptions& how);

/// Text as these tokenizers make it: training stops when nothing is left of it, or when more than
/// `data.max_unknown` of its tokens are unknown.
void look_at_tokens(const Experiment& options, const text::TokenizerPair& tokenizers,
                    const data::StillTime& still_time, Preflight& found);

}  // namespace stretto::experiment
