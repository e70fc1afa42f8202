#pragma once

#include "experiment/preflight.h"
#include "tasks/family.h"

/// The commands of masked language models.
namespace stretto::tasks {

/// `stretto eval`: scores of the test text, else of the validation text.
int evaluate_masked_lm(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: lines with mask tokens, and for each of these the best fillers.
int fill_masks(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
