#pragma once

#include "tasks/family.h"

/// The commands of speech_recognition; each returns an exit code and throws Error for what a user
/// can act on.
namespace stretto::tasks {

/// `stretto eval`: loss and error rates of sounds with texts, or the accuracy of labels.
int evaluate_speech(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: what is said in sounds, which are files of the command line, the utterances of
/// `--data`, or else paths in the lines of stdin; with `--stream` 16-bit samples on stdin.
int infer_speech(const InferRequest& request, const CommandContext& context);

/// `stretto infer --stream` (infer_stream.cpp).
int infer_speech_stream(const InferRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
