#include "families/image_classification/folders/timm_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "families/image_classification/folders/image_processor.h"
#include "families/image_classification/folders/vit_weights.h"
#include "interchange/config_reader.h"
#include "interchange/incompatibility.h"

namespace stretto::interchange {
namespace {

using models::ResNetOptions;
using models::ResNetVersion;
using models::VitOptions;

constexpr size_t kMostName = 200;

/// Arguments that names and shapes of the weights tell too, that are read, or that matter in
/// training alone.
constexpr std::array<std::string_view, 22> kHarmlessArguments{
    "num_classes",    "in_chans",        "layers",        "cardinality",     "base_width",
    "embed_dim",      "depth",           "num_heads",     "mlp_ratio",       "patch_size",
    "img_size",       "class_token",     "fc_norm",       "global_pool",     "drop_rate",
    "drop_path_rate", "drop_block_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate", "zero_init_last"};

// Others change what a model computes without another tensor, as a stem of resnetblur50 does.
bool is_known_architecture(const std::string& name) {
  static const std::regex known(
      "(tv_|gluon_)?(resnet(18|34|50|101|152|200)|resnext(50|101)_[0-9]+x[0-9]+d|"
      "wide_resnet(50|101)_2)|"
      "(vit|deit)_(tiny|small|base|large|huge)_patch[0-9]+(_gap)?_[0-9]+(_in21k|_dino|_miil)?");
  return name.size() <= kMostName && std::regex_match(name, known);
}

void require_harmless_arguments(const ConfigReader& arguments) {
  for (const auto& [key, value] : arguments.json().items()) {
    const bool is_harmless =
        value.is_null() || std::ranges::find(kHarmlessArguments, key) != kHarmlessArguments.end();
    if (is_harmless) continue;
    arguments.refuse(printable(key, 60), "is an argument that is not known here");
  }
}

std::vector<std::string> timm_labels(const ConfigReader& config) {
  if (!config.has("label_names")) return {};
  const auto& listed = config.json().at("label_names");
  std::vector<std::string> names;
  for (const auto& name : listed.is_array() ? listed : nlohmann::json::array()) {
    if (!name.is_string()) config.refuse("label_names", "is no list of names");
    names.push_back(name.get<std::string>());
  }
  require_label_names(names, "config.json: `label_names`");
  return distinct_labels(std::move(names));
}

std::string_view vit_size_name(int64_t d_model) {
  switch (d_model) {
    case 192:
      return "tiny";
    case 384:
      return "small";
    case 1024:
      return "large";
    default:
      return "base";
  }
}

/// The published network with these blocks, among those with four stages; empty where there is
/// none.
std::string published_resnet(const models::ResNetShape& shape) {
  for (const auto& preset : models::kResNetPresets) {
    ResNetOptions published;
    published.preset = std::string(preset.name);
    const auto its = models::shape_of(published);
    if (its.blocks == shape.blocks && its.bottleneck == shape.bottleneck &&
        its.groups == shape.groups && its.width_per_group == shape.width_per_group) {
      return published.preset;
    }
  }
  return "";
}

nlohmann::ordered_json resnet_arguments(const ResNetOptions& options) {
  const auto shape = models::shape_of(options);
  auto arguments = nlohmann::ordered_json::object();
  if (!published_resnet(shape).empty()) return arguments;
  arguments["layers"] = shape.blocks;
  arguments["cardinality"] = shape.groups;
  arguments["base_width"] = shape.width_per_group;
  return arguments;
}

nlohmann::ordered_json vit_arguments(const VitOptions& options) {
  auto arguments = nlohmann::ordered_json::object();
  const auto sizes = models::sizes_of(options);
  if (options.pooling == "mean") {
    arguments["class_token"] = false;
    arguments["global_pool"] = "avg";
    arguments["fc_norm"] = false;
  }
  if (!vit_preset_of(sizes).empty() && sizes.image_size == 224) return arguments;
  arguments["img_size"] = sizes.image_size;
  arguments["patch_size"] = sizes.patch_size;
  arguments["embed_dim"] = sizes.d_model;
  arguments["depth"] = sizes.num_layers;
  arguments["num_heads"] = sizes.num_heads;
  arguments["mlp_ratio"] = static_cast<double>(sizes.ffn_dim) / static_cast<double>(sizes.d_model);
  return arguments;
}

nlohmann::ordered_json pretrained_config(const ImageDescription& description, bool is_vit) {
  const auto& pictures = description.pictures;
  auto config = nlohmann::ordered_json::object();
  config["custom_load"] = false;
  config["input_size"] = {kImageChannels, pictures.size, pictures.size};
  config["fixed_input_size"] = is_vit;
  config["interpolation"] = pictures.interpolation;
  config["crop_pct"] = crop_share(pictures);
  config["crop_mode"] = pictures.squashes ? "squash" : "center";
  config["mean"] = pictures.mean;
  config["std"] = pictures.std;
  config["num_classes"] = description.labels.size();
  config["first_conv"] = is_vit ? "patch_embed.proj" : "conv1";
  config["classifier"] = is_vit ? "head" : "fc";
  return config;
}

std::string resnet_difference(const ResNetOptions& options) {
  const auto shape = models::shape_of(options);
  if (shape.num_stages() != 4 || !shape.has_large_stem) {
    return "its ResNets have four stages and begin with filters of 7 x 7 pixels";
  }
  if (shape.version == ResNetVersion::kV2) return "model.version: norms stand behind convolutions";
  if (shape.bottleneck && shape.version == ResNetVersion::kV1) {
    return "model.version = \"v1\": bottlenecks stride in their 3 x 3 convolution";
  }
  if (shape.shortcut != models::ResNetShortcut::kProjection) {
    return "model.shortcut: convolutions stand where the shape changes, and nowhere else";
  }
  if (shape.stem_width != 64 || shape.stage_width != 64) {
    return "model.base_width and model.widen_factor: the first convolution and stage have 64 "
           "channels";
  }
  if (options.norm_epsilon != 1e-5) return "model.norm_epsilon: it is 1e-5 there";
  return "";
}

std::string vit_difference(const VitOptions& options) {
  if (options.activation != "gelu") return "model.activation: it is gelu there";
  if (options.norm_epsilon != 1e-6) return "model.norm_epsilon: it is 1e-6 there";
  if (options.adapter.is_on()) return adapter_incompatibility(options.adapter);
  return "";
}

}  // namespace

bool is_timm_config(const ConfigReader& config) {
  return config.has("architecture") && !config.has("model_type");
}

TimmConfig read_timm_config(const ConfigReader& config) {
  TimmConfig found{.architecture = config.text("architecture", "")};
  if (!is_known_architecture(found.architecture)) {
    config.refuse("architecture", "is `" + printable(found.architecture, 60) + "`",
                  "timm's ResNets, ResNeXts, wide ResNets, and vision transformers of patches are "
                  "read");
  }
  found.pooling = config.text("global_pool", "");
  if (config.has("model_args")) {
    const ConfigReader arguments = config.object("model_args");
    require_harmless_arguments(arguments);
    found.num_heads = arguments.integer("num_heads", 0, 0, 1024);
    found.pooling = arguments.text("global_pool", found.pooling);
  }
  found.labels = timm_labels(config);
  return found;
}

ImagePreprocessing timm_pictures(const ConfigReader& config,
                                 const models::ImageModelOptions& model) {
  // `input_size` stays that of the architecture where `model_args` has another `img_size`.
  const int64_t only_size =
      model.is<VitOptions>() ? models::sizes_of(model.as<VitOptions>()).image_size : 0;
  const bool is_whole = config.has("pretrained_cfg");
  return read_timm_pictures(is_whole ? config.object("pretrained_cfg") : config, only_size);
}

std::string timm_incompatibility(const models::ImageModelOptions& model) {
  if (model.is<ResNetOptions>()) return resnet_difference(model.as<ResNetOptions>());
  if (model.is<VitOptions>()) return vit_difference(model.as<VitOptions>());
  return "model.name = \"" + model.name() + "\": ResNets and vision transformers are written";
}

std::string timm_architecture(const models::ImageModelOptions& model) {
  if (model.is<VitOptions>()) {
    const auto sizes = models::sizes_of(model.as<VitOptions>());
    const bool has_own = sizes.d_model != 192 && sizes.d_model != 384 && sizes.patch_size == 32;
    return "vit_" + std::string(vit_size_name(sizes.d_model)) +
           (has_own ? "_patch32" : "_patch16") + "_224";
  }
  const auto& options = model.as<ResNetOptions>();
  const auto shape = models::shape_of(options);
  const std::string published = published_resnet(shape);
  if (!published.empty()) return published;
  return shape.bottleneck ? "resnet50" : "resnet18";
}

std::string write_timm_config(const ImageDescription& description) {
  const bool is_vit = description.model.is<VitOptions>();
  auto config = nlohmann::ordered_json::object();
  config["architecture"] = timm_architecture(description.model);
  config["num_classes"] = description.labels.size();
  config["label_names"] = description.labels;
  auto arguments = is_vit ? vit_arguments(description.model.as<VitOptions>())
                          : resnet_arguments(description.model.as<ResNetOptions>());
  if (!arguments.empty()) config["model_args"] = std::move(arguments);
  config["pretrained_cfg"] = pretrained_config(description, is_vit);
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stretto::interchange
