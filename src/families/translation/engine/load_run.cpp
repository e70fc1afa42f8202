#include "families/translation/engine/load_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "families/translation/engine/translation.h"
#include "families/translation/translation_options.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {

LoadedRun load_translation_run(const experiment::Experiment& experiment,
                               const runs::RunFolder& folder, const std::string& checkpoints,
                               at::Device device) {
  LoadedRun run;
  run.tokenizers = text::load_tokenizers(translation_of(experiment).tokenizer, assets_of(folder));
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    run.models.push_back(
        make_translation_model(described, run.tokenizers, device, FirstWeights::kUnset).model);
    return *run.models.back();
  };
  run.checkpoints =
      load_checkpoints(experiment, folder, checkpoints, run.tokenizers.assets, {.make = make});
  return run;
}

std::vector<std::shared_ptr<models::Seq2SeqModel>> models_of_head(const LoadedRun& run,
                                                                  const std::string& head) {
  std::vector<std::shared_ptr<models::Seq2SeqModel>> with_it;
  for (size_t i = 0; i < run.models.size(); ++i) {
    const auto names = run.models[i]->heads();
    const auto found = std::ranges::find(names, head);
    if (names.empty() ? !head.empty() : found == names.end()) {
      throw Error(ExitCode::kBadData,
                  run.checkpoints[i].string() + " has " +
                      (names.empty() ? "one decoder" : "the heads " + join(names, ", ")) +
                      ", and " + (head.empty() ? "the run one decoder" : "no head " + head),
                  "models that decode together need the same heads");
    }
    with_it.push_back(names.empty()
                          ? run.models[i]
                          : run.models[i]->head(static_cast<size_t>(found - names.begin())));
  }
  return with_it;
}

}  // namespace stretto::tasks
