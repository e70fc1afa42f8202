// Vision transformers (Dosovitskiy et al. 2020) as ViTForImageClassification has them.
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "families/image_classification/folders/image_class.h"
#include "families/image_classification/folders/vit_weights.h"
#include "interchange/config_reader.h"
#include "interchange/incompatibility.h"

namespace stretto::interchange {
namespace {

using models::VitOptions;

constexpr int64_t kMostWidth = 65536, kMostInner = 1'000'000, kMostHeads = 1024;
constexpr int64_t kMostPatch = 4096, kMostImage = 65536;

models::ImageModelOptions read_vit(const ConfigReader& config) {
  VitOptions options;
  options.preset = "none";
  options.num_layers = config.integer("num_hidden_layers", 12, 1, 1000);
  options.d_model = config.integer("hidden_size", 768, 1, kMostWidth);
  options.num_heads = config.integer("num_attention_heads", 12, 1, kMostHeads);
  require_whole_heads(config, "num_attention_heads", options.num_heads, "hidden_size",
                      options.d_model);
  options.ffn_dim = config.integer("intermediate_size", 3072, 1, kMostInner);
  options.patch_size = config.integer("patch_size", 16, 1, kMostPatch);
  options.image_size = config.integer("image_size", 224, 1, kMostImage);
  if (options.image_size % options.patch_size != 0) {
    config.refuse("image_size", "is no multiple of patch_size",
                  "pictures are cut into whole patches here");
  }
  if (!config.flag("qkv_bias", true)) {
    config.refuse("qkv_bias", "is false: maps of attention have biases here");
  }
  if (config.integer("head_dim", options.d_model / options.num_heads, 1, kMostWidth) !=
      options.d_model / options.num_heads) {
    config.refuse("head_dim", "is not hidden_size / num_attention_heads");
  }
  options.activation = read_activation(config, "hidden_act");
  options.norm_epsilon = config.number("layer_norm_eps", 1e-12);
  options.dropout = config.number("hidden_dropout_prob", 0.0);
  options.attention_dropout = config.number("attention_probs_dropout_prob", 0.0);
  return options;
}

void write_vit(const models::ImageModelOptions& model, nlohmann::ordered_json& config) {
  const auto& options = model.as<VitOptions>();
  const auto sizes = models::sizes_of(options);
  config["hidden_size"] = sizes.d_model;
  config["num_hidden_layers"] = sizes.num_layers;
  config["num_attention_heads"] = sizes.num_heads;
  config["intermediate_size"] = sizes.ffn_dim;
  config["patch_size"] = sizes.patch_size;
  config["image_size"] = sizes.image_size;
  config["qkv_bias"] = true;
  config["hidden_act"] = activation_name(options.activation);
  config["layer_norm_eps"] = options.norm_epsilon;
  config["hidden_dropout_prob"] = options.dropout;
  config["attention_probs_dropout_prob"] = options.attention_dropout;
}

std::string vit_incompatibility(const models::ImageModelOptions& model) {
  if (!model.is<VitOptions>()) return "model.name = \"" + model.name() + "\"";
  const auto& options = model.as<VitOptions>();
  if (options.pooling != "class_token") {
    return "model.pooling = \"" + options.pooling + "\": it reads the class token";
  }
  if (options.adapter.is_on()) return adapter_incompatibility(options.adapter);
  return "";
}

}  // namespace

const ImageClass kVitClass{.model_type = "vit",
                           .name = "ViTForImageClassification",
                           .read = &read_vit,
                           .write = &write_vit,
                           .incompatibility = &vit_incompatibility};

}  // namespace stretto::interchange
