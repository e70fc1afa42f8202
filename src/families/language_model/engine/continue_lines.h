#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "decoding/generation_options.h"
#include "families/language_model/engine/generator.h"
#include "tasks/requests.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// What generation needs of a run.
struct GenerationRun {
  GeneratingModel model;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  at::Device device = at::kCPU;
};

/// `stretto infer` of language models: continues each line, or the prompts that are given instead
/// (GenerationArguments). On a CPU a line is continued with the same bits whatever lines are beside
/// it.
///
/// @param load  called once, when the files are known to be there
/// @return the exit code. Throws Error(kUsage) for options that do not go together, and for a
/// prompt
///         of the command line that the model has no positions for
int continue_lines(const InferRequest& request, const decoding::GenerationOptions& options,
                   const std::function<GenerationRun()>& load);

}  // namespace stretto::tasks
