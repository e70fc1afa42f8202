#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "models/batch_norm_keys.h"
#include "models/speech/attention_decoder_options.h"
#include "nn/init_options.h"

namespace stretto::models {

/// Sizes of a Conformer.
struct ConformerSizes {
  int64_t num_layers = 0, d_model = 0, num_heads = 0, ffn_dim = 0;
  int64_t kernel = 0;  ///< of the depthwise convolution
};

struct ConformerPreset {
  std::string_view name;
  ConformerSizes sizes;
};

/// Table 1 of the paper. Its kernel of 32 has no middle, so that programs take 31.
inline constexpr std::array<ConformerPreset, 3> kConformerPresets{{
    {"conformer_small", {16, 144, 4, 576, 31}},
    {"conformer_medium", {16, 256, 4, 1024, 31}},
    {"conformer_large", {17, 512, 8, 2048, 31}},
}};

/// `[model]` of a Conformer (Gulati et al. 2020, arXiv:2005.08100; models/speech/conformer.h).
struct ConformerOptions {
  static constexpr const char* kName = "conformer";

  std::string preset = "conformer_small";
  int64_t num_layers = 0;
  int64_t d_model = 0;
  int64_t num_heads = 0;
  int64_t ffn_dim = 0;
  int64_t kernel = 0;
  std::string subsampling = "conv2d";
  int64_t subsampling_factor = 4;
  std::string positions = "relative";
  std::string convolution_norm = "batch_norm";
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double activation_dropout = 0.1;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-5;
  AttentionDecoderOptions decoder;
  std::vector<std::string> init;

  static auto size_fields() {
    using namespace config;
    using O = ConformerOptions;
    std::vector<std::string> presets{"none"};
    for (const ConformerPreset& preset : kConformerPresets) presets.emplace_back(preset.name);
    return Fields{
        field(&O::preset, "preset",
              "sizes by name, layers / d_model / heads: small 16/144/4, medium 16/256/4, large "
              "17/512/8; with none the keys below give them",
              one_of(std::move(presets)))
            .also_called({"arch", "architecture", "variant"})
            .value_also_called("conformer_small", {"small", "s", "conformer_s"})
            .value_also_called("conformer_medium", {"medium", "m", "conformer_m"})
            .value_also_called("conformer_large", {"large", "l", "conformer_l"}),
        field(&O::num_layers, "num_layers", "layers; 0 = as the preset", between(0, 1000))
            .also_called({"num_blocks", "n_layers", "layers", "depth", "encoder_layers",
                          "num_encoder_layers"}),
        field(&O::d_model, "d_model", "width of the residual stream; 0 = as the preset",
              between(0, 65536))
            .also_called({"output_size", "encoder_dim", "hidden_size", "dim", "width"}),
        field(&O::num_heads, "num_heads", "attention heads; divides d_model; 0 = as the preset",
              between(0, 1024), {.hidden_in_shapes = true})
            .also_called({"attention_heads", "heads", "n_heads", "num_attention_heads"}),
        field(&O::ffn_dim, "ffn_dim",
              "inner width of the feed-forward parts; 0 = as the preset, or 4 d_model",
              between(0, 1000000))
            .also_called({"linear_units", "feed_forward_dim", "intermediate_size"})
            .also_called({"ff_expansion_factor", "feed_forward_expansion_factor"},
                         "d_model times the factor"),
        field(&O::kernel, "kernel",
              "rows that a filter of the convolution module covers; odd; 0 = as the preset",
              between(0, 1023), {.unit = "rows"})
            .also_called({"cnn_module_kernel", "conv_kernel_size", "depthwise_conv_kernel_size",
                          "kernel_size", "conv_depthwise_kernel_size"}),
    };
  }

  static auto form_fields() {
    using namespace config;
    using O = ConformerOptions;
    const Meta hidden{.hidden_in_shapes = true};
    return Fields{
        field(&O::subsampling, "subsampling",
              "convolutions in front of the layers, each with 3 taps and a stride of 2. conv2d: "
              "over time and frequency (the paper's). conv1d: over time alone, which costs less",
              one_of({"conv2d", "conv1d"}))
            .also_called({"input_layer", "subsampling_type"})
            .value_also_called("conv2d", {"striding", "conv2d4", "vgg"})
            .value_also_called("conv1d", {"striding_conv1d"}),
        field(&O::subsampling_factor, "subsampling_factor",
              "frames for each row of the layers: 1, 2, 4 or 8; with 1 a linear map of each frame",
              between(1, 8), {.unit = "frames"})
            .also_called({"subsampling_rate", "reduction_factor"}),
        field(
            &O::positions, "positions",
            "how attention knows places. relative: products of queries with vectors of distances "
            "(Dai et al. 2019, the paper's). rotary: queries and keys are turned (Su et al. 2021)",
            one_of({"relative", "rotary"}))
            .also_called({"pos_enc_layer_type", "self_attention_model", "pos_embed"})
            .value_also_called("relative", {"rel_pos", "rel_selfattn", "transformer_xl"})
            .value_also_called("rotary", {"rope"}),
        field(&O::convolution_norm, "convolution_norm",
              "behind the depthwise convolution: batch_norm goes by the frames of a micro-batch in "
              "training, layer_norm by each row alone",
              one_of({"batch_norm", "layer_norm"}), hidden)
            .also_called({"cnn_module_norm", "conv_norm_type"}),
    };
  }

  static auto fields() {
    using namespace config;
    using O = ConformerOptions;
    return size_fields()
        .with(form_fields())
        .with(Fields{
            field(&O::dropout, "dropout", "on the first layer's rows and each part's output",
                  fraction())
                .also_called({"dropout_rate", "drop_rate", "hidden_dropout"}),
            field(&O::attention_dropout, "attention_dropout", "on attention weights", fraction())
                .also_called({"attention_dropout_rate", "dropout_att"}),
            field(&O::activation_dropout, "activation_dropout",
                  "behind the activation of the feed-forward parts", fraction()),
        })
        .with(Fields{
            norm_momentum_field<O>().read_with("convolution_norm", {"batch_norm"}),
            norm_epsilon_field<O>().read_with("convolution_norm", {"batch_norm"}),
        })
        .with(Fields{
            field(&O::decoder, "decoder",
                  "an attention decoder beside CTC, which trains and may decode with it")
                .also_called({"attention_decoder"}),
            nn::init_field(&O::init),
        });
  }
};

/// The sizes of the model: each key that is given, else the preset's; 0 where neither says one
/// (models/speech/conformer_conflicts.h refuses it). Another d_model than the preset's has a
/// ffn_dim of four times that.
inline ConformerSizes sizes_of(const ConformerOptions& options) {
  ConformerSizes sizes;
  for (const ConformerPreset& preset : kConformerPresets) {
    if (preset.name == options.preset) sizes = preset.sizes;
  }
  const auto take = [](int64_t key, int64_t& size) {
    if (key > 0) size = key;
  };
  take(options.num_layers, sizes.num_layers);
  take(options.num_heads, sizes.num_heads);
  take(options.kernel, sizes.kernel);
  if (options.d_model > 0) sizes.ffn_dim = 4 * (sizes.d_model = options.d_model);
  take(options.ffn_dim, sizes.ffn_dim);
  return sizes;
}

/// Convolutions with a stride of 2 in front of the layers.
inline int64_t num_subsamplings(const ConformerOptions& options) {
  int64_t count = 0;
  for (int64_t factor = options.subsampling_factor; factor > 1; factor /= 2) ++count;
  return count;
}

/// Rows of an utterance of so many frames.
inline int64_t output_length(const ConformerOptions& options, int64_t frames) {
  return (frames + options.subsampling_factor - 1) / options.subsampling_factor;
}

}  // namespace stretto::models
