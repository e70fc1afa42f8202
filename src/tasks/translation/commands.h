#pragma once

#include "tasks/family.h"

/// The commands of translation; each returns an exit code and throws Error for what a user can act
/// on.
namespace stretto::tasks {

/// `stretto eval`: loss, NLL, perplexity and, on request, BLEU of a text.
int evaluate_translation(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: translates line by line.
int translate_lines(const InferRequest& request, const CommandContext& context);

/// `stretto check`: whether the weights that `train.init_from` names fit the model.
void check_translation_weights(const experiment::CheckRequest& request,
                               experiment::Preflight& found);

}  // namespace stretto::tasks
