#pragma once

#include "tasks/family.h"

/// The commands of question answering; each returns an exit code and throws Error for what a user
/// can act on.
namespace stretto::tasks {

/// `stretto eval`: exact match, F1 and loss of questions; predictions on request.
int evaluate_answers(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: answers questions of files of SQuAD, or line by line.
int infer_answers(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
