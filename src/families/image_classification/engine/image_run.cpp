#include "families/image_classification/engine/image_run.h"

#include <utility>

#include "base/error.h"
#include "data/labelled/labelled_set.h"
#include "families/image_classification/image_classification_options.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {

data::Labels classes_of(const Assets& assets) {
  const auto found = assets.find(kClassesAsset);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage, std::string("the run has no ") + kClassesAsset,
                "copy the run folder again with its tokenizer folder, which has the classes");
  }
  auto classes = data::labels_from_json(found->second, kClassesAsset);
  if (classes) return *std::move(classes);
  throw Error(ExitCode::kBadData, std::string(kClassesAsset) + " has no classes",
              "put the run folder back from a copy");
}

std::shared_ptr<models::ImageModel> make_image_network(const experiment::Experiment& experiment,
                                                       int64_t num_classes, at::Device device,
                                                       FirstWeights weights) {
  return models::make_image_model({.model = experiment::images_of(experiment).model,
                                   .num_labels = num_classes,
                                   .seed = static_cast<uint64_t>(experiment.run.seed),
                                   .draws_weights = weights == FirstWeights::kDrawn,
                                   .device = device});
}

ImageRun load_image_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                        const std::string& checkpoints, at::Device device) {
  const Assets assets = assets_of(folder);
  ImageRun run{.classes = classes_of(assets), .models = {}, .checkpoints = {}};
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    run.models.push_back(
        make_image_network(described, run.classes.size(), device, FirstWeights::kUnset));
    return *run.models.back();
  };
  run.checkpoints = load_checkpoints(experiment, folder, checkpoints, assets, {.make = make});
  return run;
}

}  // namespace stretto::tasks
