#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "families/image_classification/folders/image_description.h"

/// Classes of `transformers` that read labels from pictures.
namespace stretto::interchange {

class ConfigReader;

/// One class: its keys of config.json, and what it cannot express.
struct ImageClass {
  std::string_view model_type;  ///< config.json says so
  std::string_view name;        ///< "ResNetForImageClassification"

  models::ImageModelOptions (*read)(const ConfigReader& config);
  void (*write)(const models::ImageModelOptions& model, nlohmann::ordered_json& config);
  /// Why the class cannot express a model; empty when it can.
  std::string (*incompatibility)(const models::ImageModelOptions& model);
};

extern const ImageClass kResNetClass, kVitClass;

std::span<const ImageClass* const> image_classes();
/// By `model_type`; null when it is not known.
const ImageClass* find_image_class(std::string_view model_type);

/// config.json of a model of pictures, but for what becomes of them. Throws Error(kBadData) that
/// names the key for whatever a model here cannot be equal to.
ImageDescription read_image_config(const ConfigReader& config);
/// config.json of this description, which the class expresses.
std::string write_image_config(const ImageClass& its, const ImageDescription& description);

/// The first class that expresses the model exactly, and whose processor does what becomes of
/// pictures. @param wanted  a model_type, or "auto"
/// Throws Error(kUsage) with the reason of each class that does not.
const ImageClass& choose_image_class(const ImageDescription& description,
                                     const std::string& wanted);

/// The names of `id2label`, each of them once; nothing where the key is missing.
/// @param most  more are refused
std::optional<std::vector<std::string>> read_id2label(const ConfigReader& config, int64_t most);

}  // namespace stretto::interchange
