#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "nn/adapter_options.h"
#include "nn/init_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// Sizes of a vision Transformer.
struct VitSizes {
  int64_t num_layers = 0, d_model = 0, num_heads = 0, ffn_dim = 0;
  int64_t patch_size = 0, image_size = 0;

  /// Patches of a side of a picture of image_size.
  int64_t grid() const { return patch_size > 0 ? image_size / patch_size : 0; }
};

struct VitPreset {
  std::string_view name;
  VitSizes sizes;
};

inline constexpr std::array<VitPreset, 7> kVitPresets{{
    {"vit_tiny_patch4_32", {12, 192, 3, 768, 4, 32}},
    {"vit_tiny_patch16_224", {12, 192, 3, 768, 16, 224}},
    {"vit_small_patch16_224", {12, 384, 6, 1536, 16, 224}},
    {"vit_base_patch16_224", {12, 768, 12, 3072, 16, 224}},
    {"vit_base_patch32_224", {12, 768, 12, 3072, 32, 224}},
    {"vit_large_patch16_224", {24, 1024, 16, 4096, 16, 224}},
    {"vit_large_patch32_224", {24, 1024, 16, 4096, 32, 224}},
}};

/// `[model]` of a vision Transformer (Dosovitskiy et al. 2020, arXiv:2010.11929;
/// models/images/vit.h).
struct VitOptions {
  static constexpr const char* kName = "vit";

  std::string preset = "vit_base_patch16_224";
  int64_t num_layers = 0;
  int64_t d_model = 0;
  int64_t num_heads = 0;
  int64_t ffn_dim = 0;
  int64_t patch_size = 0;
  int64_t image_size = 0;
  std::string pooling = "class_token";
  std::string activation = "gelu";
  double norm_epsilon = 1e-6;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;
  double drop_path = 0.0;
  std::vector<std::string> init;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;

  static auto size_fields() {
    using namespace config;
    using O = VitOptions;
    std::vector<std::string> presets{"none"};
    for (const VitPreset& preset : kVitPresets) presets.emplace_back(preset.name);
    return Fields{
        field(&O::preset, "preset",
              "sizes by name, layers / d_model / heads: tiny 12/192/3, small 12/384/6, base "
              "12/768/12, large 24/1024/16; with none the keys below give them",
              one_of(std::move(presets)))
            .also_called({"arch", "architecture", "model_type", "variant"})
            .value_also_called("vit_base_patch16_224", {"vit_b_16", "vit_base"})
            .value_also_called("vit_base_patch32_224", {"vit_b_32"})
            .value_also_called("vit_large_patch16_224", {"vit_l_16", "vit_large"})
            .value_also_called("vit_large_patch32_224", {"vit_l_32"})
            .value_also_called("vit_small_patch16_224", {"vit_s_16", "vit_small", "deit_small"})
            .value_also_called("vit_tiny_patch16_224", {"vit_ti_16", "vit_tiny", "deit_tiny"}),
        field(&O::num_layers, "num_layers", "layers; 0 = as the preset", between(0, 1000))
            .also_called({"depth", "layers", "num_hidden_layers", "n_layers"}),
        field(&O::d_model, "d_model", "width of the residual stream; 0 = as the preset",
              between(0, 65536))
            .also_called({"embed_dim", "hidden_size", "hidden_dim", "dim", "width"}),
        field(&O::num_heads, "num_heads", "attention heads; divides d_model; 0 = as the preset",
              between(0, 1024), {.hidden_in_shapes = true})
            .also_called({"heads", "num_attention_heads", "n_heads"}),
        field(&O::ffn_dim, "ffn_dim",
              "inner width of the feed-forward part; 0 = as the preset, or 4 d_model",
              between(0, 1000000))
            .also_called({"mlp_dim", "intermediate_size"})
            .also_called({"mlp_ratio"}, "d_model times the ratio"),
        field(&O::patch_size, "patch_size", "height and width of a patch; 0 = as the preset",
              between(0, 4096), {.unit = "pixels"}),
        field(&O::image_size, "image_size",
              "height and width of the pictures that the table of positions is of; those of other "
              "sizes read it interpolated; 0 = as the preset",
              between(0, 65536), {.unit = "pixels"})
            .also_called({"img_size", "input_size"}),
    };
  }

  static auto dropout_fields() {
    using namespace config;
    using O = VitOptions;
    return Fields{
        field(&O::dropout, "dropout", "on embedded patches and each part's output", fraction())
            .also_called({"drop_rate", "proj_drop_rate", "pos_drop_rate", "hidden_dropout_prob"}),
        field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
            .also_called({"attn_drop_rate", "attention_probs_dropout_prob"}),
        field(&O::activation_dropout, "activation_dropout", "after the feed-forward activation",
              fraction()),
        field(&O::drop_path, "drop_path",
              "share of samples for which the parts of the last layer add nothing; that of the "
              "layers before it grows evenly (stochastic depth)",
              fraction())
            .also_called({"drop_path_rate", "stochastic_depth", "stochastic_depth_prob"}),
    };
  }

  static auto fields() {
    using namespace config;
    using O = VitOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return size_fields()
        .with(Fields{
            field(&O::pooling, "pooling",
                  "the row that labels are read from: that of a class token in front of the "
                  "patches, or the mean of all patches, and there is no such token",
                  one_of({"class_token", "mean"}))
                .also_called({"global_pool", "classifier", "pool", "pool_type"})
                .value_also_called("class_token", {"token", "cls", "cls_token"})
                .value_also_called("mean", {"avg", "gap", "average"}),
            field(&O::activation, "activation",
                  "of the feed-forward part: gelu is exact, gelu_tanh its approximation",
                  one_of({"gelu", "gelu_tanh", "relu"}), hidden)
                .also_called({"hidden_act", "act_layer"})
                .value_also_called("gelu_tanh", {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"}),
            field(&O::norm_epsilon, "norm_epsilon",
                  "added to each variance; 1e-6 is torchvision's and timm's, 1e-12 that of "
                  "`transformers`",
                  {.min = 0, .max = 0.1, .min_open = true, .choices = {}}, hidden)
                .also_called({"layer_norm_eps", "norm_eps", "layer_norm_epsilon"}),
        })
        .with(dropout_fields())
        .with(Fields{
            nn::init_field(&O::init),
            field(&O::lora, "lora", "low-rank adaptation of linear maps, for fine-tuning")
                .also_called({"peft"}),
            field(&O::adapter, "adapter", "bottleneck adapters behind parts, for fine-tuning")
                .also_called({"adapters", "bottleneck_adapter"}),
        });
  }
};

/// The sizes of the model: each key that is given, else the preset's; 0 where neither says one
/// (models/images/image_conflicts.h refuses it). Another d_model than the preset's has a ffn_dim of
/// four times that.
inline VitSizes sizes_of(const VitOptions& options) {
  VitSizes sizes;
  for (const VitPreset& preset : kVitPresets) {
    if (preset.name == options.preset) sizes = preset.sizes;
  }
  const auto take = [](int64_t key, int64_t& size) {
    if (key > 0) size = key;
  };
  take(options.num_layers, sizes.num_layers);
  take(options.num_heads, sizes.num_heads);
  take(options.patch_size, sizes.patch_size);
  take(options.image_size, sizes.image_size);
  if (options.d_model > 0) sizes.ffn_dim = 4 * (sizes.d_model = options.d_model);
  if (sizes.ffn_dim == 0) sizes.ffn_dim = 4 * sizes.d_model;
  take(options.ffn_dim, sizes.ffn_dim);
  return sizes;
}

}  // namespace stretto::models
