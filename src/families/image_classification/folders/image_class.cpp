#include "families/image_classification/folders/image_class.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/folders/image_processor.h"
#include "interchange/config_reader.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

constexpr std::array<const ImageClass*, 2> kImageClasses{&kResNetClass, &kVitClass};

void require_channels(const ConfigReader& config) {
  if (config.integer("num_channels", kImageChannels, 1, 1024) == kImageChannels) return;
  config.refuse("num_channels", "is not 3: pictures are red, green and blue here");
}

std::vector<std::string> labels_of_config(const ConfigReader& config) {
  if (auto named = read_id2label(config, kMaxImageLabels)) return *std::move(named);
  return numbered_labels(config.integer("num_labels", 2, 1, kMaxImageLabels));
}

}  // namespace

std::span<const ImageClass* const> image_classes() {
  return kImageClasses;
}

const ImageClass* find_image_class(std::string_view model_type) {
  for (const ImageClass* its : kImageClasses) {
    if (its->model_type == model_type) return its;
  }
  return nullptr;
}

std::optional<std::vector<std::string>> read_id2label(const ConfigReader& config, int64_t most) {
  if (!config.has("id2label")) return std::nullopt;
  const auto& listed = config.json().at("id2label");
  if (!listed.is_object() || listed.empty() || listed.size() > static_cast<size_t>(most)) {
    config.refuse("id2label", "is no list of labels", "the config.json is damaged");
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < listed.size(); ++i) {
    const auto found = listed.find(std::to_string(i));
    if (found == listed.end() || !found->is_string()) {
      config.refuse("id2label", "has no name for label " + std::to_string(i),
                    "give the labels 0, 1, … a name each");
    }
    names.push_back(found->get<std::string>());
  }
  require_label_names(names, "config.json: `id2label`");
  return distinct_labels(std::move(names));
}

ImageDescription read_image_config(const ConfigReader& config) {
  const std::string type = config.text("model_type", "");
  const ImageClass* its = find_image_class(type);
  if (its == nullptr) {
    std::vector<std::string> known;
    for (const ImageClass* one : kImageClasses) known.emplace_back(one->model_type);
    refuse_model_type(config, type, known);
  }
  const std::string name = model_class_of(config);
  if (!name.empty() && name != its->name) {
    config.refuse("architectures", "names `" + printable(name, 60) + "`",
                  "give a folder of " + std::string(its->name));
  }
  if (config.has("problem_type") &&
      config.text("problem_type", "") != "single_label_classification") {
    config.refuse("problem_type", "is not single_label_classification: a picture has one class");
  }
  require_channels(config);
  // Not in braces: GCC 12 destroys `pictures` twice when what follows it throws.
  ImageDescription description;
  description.name = its->name;
  description.model = its->read(config);
  description.labels = labels_of_config(config);
  return description;
}

std::string write_image_config(const ImageClass& its, const ImageDescription& description) {
  auto config = nlohmann::ordered_json::object();
  config["architectures"] = nlohmann::ordered_json::array({its.name});
  config["model_type"] = its.model_type;
  config["num_channels"] = kImageChannels;
  its.write(description.model, config);
  auto names = nlohmann::ordered_json::object(), numbers = nlohmann::ordered_json::object();
  for (size_t i = 0; i < description.labels.size(); ++i) {
    names[std::to_string(i)] = description.labels[i];
    numbers[description.labels[i]] = i;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(numbers);
  config["problem_type"] = "single_label_classification";
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

const ImageClass& choose_image_class(const ImageDescription& description,
                                     const std::string& wanted) {
  std::vector<std::string> reasons;
  for (const ImageClass* its : kImageClasses) {
    if (wanted != "auto" && its->model_type != wanted) continue;
    std::string reason = its->incompatibility(description.model);
    if (reason.empty()) {
      reason = processor_incompatibility(description.pictures, std::string(its->model_type));
    }
    if (reason.empty()) return *its;
    reasons.push_back(std::string(its->name) + ": " + reason);
  }
  throw Error(ExitCode::kUsage,
              "no class of transformers is equal to this model: " + join(reasons, "; "),
              "--format torchvision and --format timm write other models");
}

}  // namespace stretto::interchange
