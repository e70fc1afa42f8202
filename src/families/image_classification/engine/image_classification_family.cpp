#include "families/image_classification/engine/image_classification_family.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "data/images/image_table.h"
#include "data/labelled/labelled_set.h"
#include "families/image_classification/engine/commands.h"
#include "families/image_classification/engine/image_classification.h"
#include "families/image_classification/engine/image_run.h"
#include "families/image_classification/image_classification_options.h"
#include "families/image_classification/image_sizes.h"
#include "models/model_cost.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/initial_weights.h"
#include "runs/merged_lora.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"

namespace stretto::tasks {
namespace {

using experiment::images_of;

constexpr int64_t kAnyClasses = 2;  // no other tensor than the head's depends on them

std::shared_ptr<models::ImageModel> described(const experiment::Experiment& experiment,
                                              int64_t num_classes = kAnyClasses) {
  return make_image_network(experiment, num_classes, at::kMeta, FirstWeights::kUnset);
}

std::vector<std::string> sorted_names(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

// The classes of the run that `train.init_from` names, if it has some.
std::optional<data::Labels> classes_of_other_run(const experiment::Experiment& experiment) {
  if (experiment.train.init_from.empty()) return std::nullopt;
  const auto run = open_initial_run(experiment, runs::Reading::kHeads);
  const auto found = run.tokenizer.find(kClassesAsset);
  if (found == run.tokenizer.end()) return std::nullopt;
  return data::labels_from_json(found->second, (run.folder / kClassesAsset).string());
}

// Another run's head means the classes in its own order: with the same classes that order is taken.
data::Labels first_classes(const experiment::Experiment& experiment) {
  const auto& data = images_of(experiment).data;
  const auto training = [&data] {
    const log::Silence silence;  // the task tells of its pictures
    return data::open_images(data, "data.train", data.train);
  }();
  auto own = data::image_classes(data, *training);
  for (const auto& alike : data::labels_alike(own.names())) {
    log::warn((data.classes.empty() ? "data.train: classes " : "data.classes: ") + alike + "; " +
              data::kLabelsAlikeAdvice);
  }
  auto others = classes_of_other_run(experiment);
  if (!others || others->names() == own.names()) return own;
  const bool same_names = sorted_names(others->names()) == sorted_names(own.names());
  if (same_names && data.classes.empty()) {
    log::info("classes in the order of " + experiment.train.init_from + ": " +
              printable(join(others->names(), ", "), 1000));
    return *std::move(others);
  }
  if (others->size() == own.size()) {
    log::warn("train.init_from: the run has other classes, or another order (" +
              printable(join(others->names(), ", "), 1000) +
              "), and its head is taken all the same; train.init_only with patterns of the other "
              "layers leaves it");
  }
  return own;
}

class ImageClassificationFamily final : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    const auto classes = first_classes(experiment.options);
    return {{kClassesAsset, data::labels_to_json(&classes)}};
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<ImageClassificationTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_images(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return infer_images(request, context);
  }

  std::string export_model(const ExportedRun& run, const ExportRequest& request) const override {
    return export_image_model(run, request);
  }

  std::string memory_advice(MemoryUse use) const override {
    if (use != MemoryUse::kTrain) return "lower eval.max_samples, to 16, say";
    return "halve data.max_samples and double train.update_freq: the batch of an update stays the "
           "same, but for the statistics of batch norm; where validation was at work, lower "
           "eval.max_samples";
  }

  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return optim::names_of(optim::Arena(*described(experiment), optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& request) const override {
    const auto& options = images_of(request.experiment);
    int64_t classes = std::ssize(options.data.classes);
    if (classes == 0) {
      const auto count = data::count_images(options.data, options.data.train);
      classes = count ? count->classes : 0;
    }
    const int64_t size = experiment::image_size_of(options);
    return models::cost_of(*described(request.experiment, classes > 0 ? classes : kAnyClasses),
                           size, size);
  }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_image_network(experiment, classes_of(assets).size(),
                              draws_weights ? at::kCPU : at::kMeta,
                              draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset);
  }

  // As training begins; a model without memory has the names and shapes of the real one.
  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override {
    const auto& e = request.experiment.options;
    const std::string key = "train.init_from";
    experiment::note_stop(found, experiment::Stage::kWeights, key, [&] {
      const auto run =
          open_initial_run(e, request.full ? runs::Reading::kAll : runs::Reading::kHeads);
      // A model that means something else by the weights may have other shapes, too.
      experiment::note_stop(found, experiment::Stage::kWeights, key,
                            [&] { InitialModel(run).require_alike(e); });
      const auto model = described(e);
      const optim::Arena arena(*model, optim::Arena::Gradients::kNone);
      const std::string where = run.weights_file();
      const auto weights = runs::weights_to_begin_with(run.checkpoint.file("model"), where, arena,
                                                       runs::LoraValues::kNames);
      const runs::TakenWeights taken{.entries = e.train.init_only, .replaceable = {"head.*"}};
      runs::require_some_weights_fit(weights.file, where, arena, taken, {});
      if (request.full) return;
      found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
    });
  }

  // Each model scales pictures to the size that the configuration says.
  void require_room(const std::filesystem::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}
};

}  // namespace

const Family& image_classification_family() {
  static const ImageClassificationFamily family;
  return family;
}

}  // namespace stretto::tasks
