#pragma once

#include "tasks/family.h"

/// The commands of translation; eval and infer return an exit code, and each throws Error for what
/// a user can act on.
namespace stretto::tasks {

/// `stretto eval`: loss, NLL, perplexity and, on request, BLEU of a text.
int evaluate_translation(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: translates line by line.
int translate_lines(const InferRequest& request, const CommandContext& context);

/// `stretto export`: a folder of MarianMTModel or PegasusForConditionalGeneration. Returns which.
std::string export_translation(const ExportedRun& run, const ExportRequest& request);

/// Family::tensor_names() and Family::model_cost().
std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment);
models::ModelCost model_cost(const CostRequest& request);

/// `stretto check`: whether the weights that `train.init_from` names fit the model.
void check_translation_weights(const experiment::CheckRequest& request,
                               experiment::Preflight& found);

}  // namespace stretto::tasks
