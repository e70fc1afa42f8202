#include "families/translation/engine/load_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "families/translation/engine/translation.h"
#include "families/translation/translation_options.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "tasks/checkpoint_experiment.h"

namespace stretto::tasks {

LoadedRun load_translation_run(const experiment::Experiment& experiment,
                               const runs::RunFolder& folder, const std::string& checkpoints,
                               at::Device device) {
  const auto assets = folder.read_assets();
  if (assets.empty()) {
    throw Error(ExitCode::kUsage, folder.directory().string() + " has no tokenizer yet",
                "training never came so far; run `stretto train` first");
  }
  LoadedRun run;
  run.tokenizers = text::load_tokenizers(translation_of(experiment).tokenizer, assets);
  const auto hashes = runs::tokenizer_hashes(run.tokenizers.assets);
  for (const auto& checkpoint : runs::open_checkpoints(folder.directory(), checkpoints)) {
    const auto described = checkpoint_experiment(checkpoint, folder, experiment);
    runs::require_same_tokenizer(checkpoint, hashes, folder.directory() / "tokenizer");
    auto model =
        make_translation_model(described, run.tokenizers, device, FirstWeights::kUnset).model;
    runs::load_weights(checkpoint, *model);
    model->eval();
    run.models.push_back(std::move(model));
    run.checkpoints.push_back(checkpoint.directory);
  }
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
