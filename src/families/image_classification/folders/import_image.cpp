#include "families/image_classification/folders/import_image.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "families/image_classification/folders/image_class.h"
#include "families/image_classification/folders/image_processor.h"
#include "families/image_classification/folders/resnet_weights.h"
#include "families/image_classification/folders/timm_config.h"
#include "families/image_classification/folders/vit_weights.h"
#include "families/image_classification/folders/weight_shapes.h"
#include "interchange/config_reader.h"
#include "interchange/folder_tensors.h"
#include "interchange/model_folders.h"
#include "store/weight_files.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using store::TensorView;

/// Models of ImageNet see 224 pixels, in the middle of 256 (torchvision's first weights); those
/// for CIFAR see the whole picture.
ImagePreprocessing usual_pictures(const models::ImageModelOptions& model) {
  ImagePreprocessing pictures;
  pictures.size = models::usual_image_of(model);
  if (pictures.size >= 128) pictures.resize = pictures.size * 256 / 224;
  return pictures;
}

ImageWeights weights_of(const TensorsByName& tensors, int64_t num_heads, const fs::path& place) {
  if (auto resnet = find_resnet(tensors, place.string())) return *std::move(resnet);
  if (auto vit = find_vit(tensors, num_heads, place.string())) return *std::move(vit);
  throw Error(ExitCode::kBadData,
              place.string() +
                  ": the names of the tensors are of no ResNet and of no vision "
                  "transformer",
              "models with the names of torchvision or timm are read");
}

std::vector<std::string> labels_for(const ImageWeights& weights, const ImportOptions& options) {
  if (options.labels.empty()) return numbered_labels(weights.num_labels);
  return read_label_file(options.labels, weights.num_labels);
}

DescribedImageModel described_file(const ImageWeights& weights, const ImportOptions& options) {
  return {.description = {.name = weights.name,
                          .model = weights.model,
                          .pictures = usual_pictures(weights.model),
                          .labels = labels_for(weights, options)},
          .spelling = weights.spelling};
}

void require_pooling(const ConfigReader& config, const TimmConfig& stated,
                     const models::ImageModelOptions& model) {
  const bool has_token =
      model.is<models::VitOptions>() && model.as<models::VitOptions>().pooling == "class_token";
  if (stated.pooling.empty() || stated.pooling == (has_token ? "token" : "avg")) return;
  config.refuse("global_pool", "is `" + printable(stated.pooling, 60) + "`",
                has_token ? "with a class token, `token` is known" : "`avg` is known");
}

DescribedImageModel described_timm(const ConfigReader& config, const TensorsByName& tensors,
                                   const fs::path& folder, const ImportOptions& options) {
  auto stated = read_timm_config(config);
  const auto weights = weights_of(tensors, stated.num_heads, folder);
  require_pooling(config, stated, weights.model);
  auto labels = std::move(stated.labels);
  if (!options.labels.empty() || std::ssize(labels) != weights.num_labels) {
    labels = labels_for(weights, options);
  }
  return {.description = {.name = stated.architecture,
                          .model = weights.model,
                          .pictures = timm_pictures(config, weights.model),
                          .labels = std::move(labels)},
          .spelling = weights.spelling};
}

DescribedImageModel described_transformers(const ConfigReader& config, const fs::path& folder,
                                           const ImportOptions& options) {
  DescribedImageModel model{.description = read_image_config(config)};
  auto& description = model.description;
  if (!options.labels.empty()) {
    description.labels = read_label_file(options.labels, std::ssize(description.labels));
  }
  const fs::path processor = folder / "preprocessor_config.json";
  if (!fs::exists(processor)) {
    throw Error(ExitCode::kUsage, folder.string() + ": no preprocessor_config.json",
                "copy the file into the folder: it says what becomes of a picture before the model "
                "sees it");
  }
  description.pictures = read_image_processor(read_config_file(processor, kMaxConfigBytes));
  return model;
}

/// @param weights  null: only a folder of `transformers` is described without them
DescribedImageModel described(const fs::path& place, const ImportOptions& options,
                              const store::WeightFiles* weights) {
  if (options.encoder_only) {
    throw Error(ExitCode::kUsage, place.string() + ": --encoder-only, but it reads pictures",
                "leave the option out: a model of pictures is imported whole");
  }
  if (fs::is_regular_file(place)) {
    return described_file(weights_of(without_wrappers(weights->tensors()), 0, place), options);
  }
  const ConfigReader config = read_folder_config(place);
  if (!is_timm_config(config)) return described_transformers(config, place, options);
  return described_timm(config, without_wrappers(weights->tensors()), place, options);
}

/// Others have the class token and the positions as a batch of one.
void take_off_batch(std::vector<TensorView>& tensors) {
  for (TensorView& tensor : tensors) {
    const size_t wanted = tensor.name == kClassToken ? 1 : tensor.name == kPositions ? 2 : 0;
    while (wanted > 0 && tensor.shape.size() > wanted && tensor.shape.front() == 1) {
      tensor.shape.erase(tensor.shape.begin());
    }
  }
}

void take_image_tensors(ImportedRun& model, const DescribedImageModel& described,
                        const fs::path& place, const ImportOptions& options) {
  const TensorsByName theirs = without_wrappers(model.files->tensors());
  model.names = image_names(described.description.model, described.spelling);
  auto found = joined(theirs, model.names, 0, place.string());
  model.tensors = found.list.tensors;
  take_off_batch(model.tensors);
  model.missing = found.missing;
  model.own = std::make_shared<TensorList>(std::move(found.list));
  const std::set<std::string> known(found.taken.begin(), found.taken.end());
  NameMismatches mismatches{
      .model_class = model.model_class, .not_found = found.not_found, .extra = {}};
  for (const auto& [name, tensor] : theirs) {
    if (known.contains(name)) continue;
    const bool is_count = name.ends_with("num_batches_tracked");
    const bool unread = matches_any(unread_image_names(), name);
    if (is_count) continue;  // one for each norm, which says nothing of the model
    (unread || options.ignore_extra ? model.left_out : mismatches.extra).push_back(name);
  }
  require_names(mismatches, options, place, "");
}

/// What was assumed where the files say nothing.
void add_notes(const ImageDescription& description, ImportedRun& model) {
  const auto& labels = description.labels;
  if (labels == numbered_labels(std::ssize(labels))) {
    model.notes.push_back("the classes are called 0, 1, …: --labels FILE names them");
  }
}

}  // namespace

bool are_image_weights(const std::vector<TensorView>& tensors) {
  const auto named = without_wrappers(tensors);
  return looks_like_resnet(named) || looks_like_vit(named);
}

DescribedImageModel describe_image_model(const fs::path& place, const ImportOptions& options) {
  const bool needs_weights =
      fs::is_regular_file(place) || is_timm_config(read_folder_config(place));
  if (!needs_weights) return described(place, options, nullptr);
  const store::WeightFiles weights(place);
  return described(place, options, &weights);
}

ImportedRun import_image(const fs::path& place, const ImportOptions& options) {
  ImportedRun model;
  if (fs::is_directory(place)) read_folder_config(place);  // what is missing first
  model.files = std::make_shared<const store::WeightFiles>(place);
  const auto found = described(place, options, model.files.get());
  model.model_class = found.description.name;
  model.experiment = experiment_of(found.description);
  model.assets["labels.json"] = nlohmann::json(found.description.labels).dump();
  take_image_tensors(model, found, place, options);
  add_notes(found.description, model);
  return model;
}

}  // namespace stretto::interchange
