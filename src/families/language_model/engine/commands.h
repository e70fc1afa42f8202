#pragma once

#include <string>

#include "tasks/family.h"

/// The commands of language models.
namespace stretto::tasks {

/// `stretto eval`: how probable the test text is, else the validation text; with `--per-line` also
/// each line or document by itself.
int evaluate_language_model(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: continues each line, or the prompts of the command line.
int infer_language_model(const InferRequest& request, const CommandContext& context);

/// `stretto export`: the class of GPT-2's or of Llama's form that is equal to a Transformer. Throws
/// Error(kUsage) with the reasons where none is.
std::string export_language_model(const ExportedRun& run, const ExportRequest& request);

}  // namespace stretto::tasks
