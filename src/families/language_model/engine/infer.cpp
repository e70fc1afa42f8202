#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "decoding/ensemble.h"
#include "families/language_model/engine/commands.h"
#include "families/language_model/engine/continue_lines.h"
#include "families/language_model/engine/language_run.h"
#include "families/language_model/language_model_rules.h"

namespace stretto::tasks {
namespace {

using Models = std::vector<std::shared_ptr<models::CausalModel>>;

/// One model, or an ensemble of several.
std::unique_ptr<decoding::StepModel> start_models(const Models& models, int64_t sources,
                                                  int64_t lanes_per_source) {
  if (models.size() == 1) return models.front()->start(sources, lanes_per_source);
  std::vector<std::unique_ptr<decoding::StepModel>> members;
  for (const auto& model : models) members.push_back(model->start(sources, lanes_per_source));
  return std::make_unique<decoding::EnsembleStepModel>(std::move(members));
}

}  // namespace

int infer_language_model(const InferRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  const auto folder = runs::RunFolder::open(request.run_directory);
  return continue_lines(request, language_model_of(experiment).decode, [&] {
    const auto run = load_language_run(experiment, folder, request.checkpoints, context.device);
    GenerationRun generation{.tokenizer = run.tokenizer.tokenizer, .device = context.device};
    generation.model.start = [models = run.models](int64_t sources, int64_t lanes_per_source) {
      return start_models(models, sources, lanes_per_source);
    };
    for (const auto& model : run.models) {
      generation.model.max_length = std::min(generation.model.max_length, model->max_length());
    }
    const auto& own = language_model_of(experiment);
    generation.model.before = tokens_before_text(own, *run.tokenizer.tokenizer);
    generation.model.writes_all = begins_as_tokenizer(own);
    generation.model.ends = experiment::end_tokens_of(own, *run.tokenizer.tokenizer);
    return generation;
  });
}

}  // namespace stretto::tasks
