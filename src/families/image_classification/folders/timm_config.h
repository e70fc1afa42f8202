#pragma once

#include <string>

#include "families/image_classification/folders/image_description.h"

/// config.json as timm writes it for the model hub: `architecture`, `pretrained_cfg`, `model_args`.
namespace stretto::interchange {

class ConfigReader;

/// Whether a config.json has timm's keys.
bool is_timm_config(const ConfigReader& config);

/// What it says beside the weights, whose names and shapes tell the model.
struct TimmConfig {
  std::string architecture;         ///< "resnet50"
  std::vector<std::string> labels;  ///< empty where it names none
  std::string pooling;              ///< `global_pool`; empty = as the architecture has
  int64_t num_heads = 0;            ///< of `model_args`; 0 = as the architecture has
};
/// Throws Error(kBadData) that names the key: for an architecture that is not known, and for
/// arguments of a model that change what it computes.
TimmConfig read_timm_config(const ConfigReader& config);
/// What becomes of pictures before this model sees them. Throws Error(kBadData) likewise.
ImagePreprocessing timm_pictures(const ConfigReader& config,
                                 const models::ImageModelOptions& model);

/// The same file of a description. timm.create_model("local-dir:FOLDER") reads it.
std::string write_timm_config(const ImageDescription& description);
/// Why timm has no such model; empty where it has one.
std::string timm_incompatibility(const models::ImageModelOptions& model);
/// The name of its function: "resnet50". Of a model that it has.
std::string timm_architecture(const models::ImageModelOptions& model);

}  // namespace stretto::interchange
