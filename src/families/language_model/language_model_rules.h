#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/documents/causal_text.h"
#include "experiment/task_rules.h"
#include "families/language_model/language_model_options.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "language_model"`.
const TaskRules& language_model_rules();

/// The sections of a language model. Throws std::bad_variant_access for another
/// family.
const LanguageModelOptions& language_model_sections(const Experiment& experiment);

/// The tokens of `decode.end_tokens`, which end a continuation as the tokenizer's own end of a text
/// does. Throws Error(kUsage) for one that the tokenizer does not have.
std::vector<int64_t> end_tokens_of(const LanguageModelOptions& options,
                                   const text::Tokenizer& tokenizer);

/// The lanes of a recurrent model: those of training, and those that evaluation reads.
data::WantedLanes training_lanes(const LanguageModelOptions& options);
data::WantedLanes eval_lanes(const LanguageModelOptions& options);

/// Tokens of a micro-batch at most, of either kind of models.
int64_t micro_batch_tokens(const Experiment& experiment);

/// Why the groups of an adaptive softmax, or the draws of a sampled one, may gain little: they go
/// by ids, which the tokenizer does not have in the order of frequency. Empty = it has, or there is
/// one softmax over all.
std::string doubt_of_groups(const LanguageModelOptions& options);

/// Tokens of a window of evaluation, and from the begin of one to that of the next.
struct EvalWindow {
  int64_t length = 0, stride = 0;
};
EvalWindow eval_window(const LanguageModelOptions& options);

}  // namespace stretto::experiment
