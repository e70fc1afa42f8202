#pragma once

#include "tasks/family.h"

/// The commands of speech_synthesis; each returns an exit code and throws Error for what a user can
/// act on.
namespace stretto::tasks {

/// `stretto eval`: loss, distance of frames, ends and attention under teacher forcing.
int evaluate_voice(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: a sound for each line of text.
int speak_lines(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
