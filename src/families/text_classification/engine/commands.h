#pragma once

#include "tasks/family.h"

/// The commands of text_classification; each returns an exit code and throws Error for what a user
/// can act on.
namespace stretto::tasks {

/// `stretto eval`: loss and scores of labelled texts.
int evaluate_labels(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: a label, or a value, for each line of text.
int infer_labels(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
