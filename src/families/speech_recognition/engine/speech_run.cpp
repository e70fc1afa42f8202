#include "families/speech_recognition/engine/speech_run.h"

#include <utility>

#include "base/error.h"
#include "data/labelled/labelled_set.h"
#include "data/tokenizer_store.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

data::Labels labels_of_run(const Assets& assets) {
  const auto found = assets.find(kSpeechLabelsAsset);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage, std::string("the run has no ") + kSpeechLabelsAsset,
                "copy the run folder again with its tokenizer folder, which has the labels");
  }
  auto labels = data::labels_from_json(found->second, kSpeechLabelsAsset);
  if (labels) return *std::move(labels);
  throw Error(ExitCode::kBadData, std::string(kSpeechLabelsAsset) + " has no labels",
              "put the run folder back from a copy");
}

// Rows of an ensemble are averaged one by one.
void require_equal_rows(const experiment::Experiment& own, const experiment::Experiment& other) {
  const auto& mine = experiment::speech_of(own);
  const auto& theirs = experiment::speech_of(other);
  if (mine.has_label() != theirs.has_label()) {
    throw Error(ExitCode::kUsage, "--checkpoint: one model writes texts, and another one labels",
                "name checkpoints of one task");
  }
  if (mine.has_label()) return;
  constexpr int64_t kSeveralStrides = 10'000;  // no two strides give as many rows of it
  if (models::output_length(mine.model, kSeveralStrides) ==
      models::output_length(theirs.model, kSeveralStrides)) {
    return;
  }
  throw Error(ExitCode::kUsage,
              "--checkpoint: the models of the ensemble give other numbers of rows for a sound",
              "name checkpoints of models with equal strides");
}

}  // namespace

SpeechUnits units_of(const experiment::Experiment& experiment, const Assets& assets) {
  const auto& own = experiment::speech_of(experiment);
  SpeechUnits units;
  if (own.has_label()) {
    units.labels = labels_of_run(assets);
  } else {
    units.tokenizer = data::open_tokenizers(own.tokenizer.tokenizer_options(), assets).src;
  }
  return units;
}

std::shared_ptr<models::SpeechModel> make_speech_network(const experiment::Experiment& experiment,
                                                         int64_t num_units, at::Device device,
                                                         FirstWeights weights) {
  const auto& own = experiment::speech_of(experiment);
  return models::make_speech_model(
      {.model = own.model,
       .num_features = own.features.width(),
       .num_labels = num_units,
       .target = own.has_label() ? models::SpeechTarget::kLabel : models::SpeechTarget::kTokens,
       .seed = static_cast<uint64_t>(experiment.run.seed),
       .draws_weights = weights == FirstWeights::kDrawn,
       .device = device});
}

SpeechRun load_speech_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                          const std::string& checkpoints, at::Device device) {
  const Assets assets = assets_of(folder);
  SpeechRun run;
  run.units = units_of(experiment, assets);
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    require_equal_rows(experiment, described);
    run.models.push_back(
        make_speech_network(described, run.units.size(), device, FirstWeights::kUnset));
    return *run.models.back();
  };
  run.checkpoints = load_checkpoints(experiment, folder, checkpoints, assets, {.make = make});
  return run;
}

}  // namespace stretto::tasks
