#pragma once

#include "tasks/family.h"

/// The commands of image_classification; each returns an exit code and throws Error for what a user
/// can act on.
namespace stretto::tasks {

/// `stretto eval`: loss and accuracies of labelled pictures.
int evaluate_images(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: what is on pictures, which are files of the command line, or else paths in the
/// lines of stdin.
int infer_images(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
