#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "models/batch_norm_keys.h"
#include "nn/init_options.h"

namespace stretto::models {

/// A preset by its name; 0 and empty = as the keys' own rules say.
struct ResNetPreset {
  std::string_view name;
  int64_t depth = 0;
  std::string_view version = "";
  int64_t groups = 1;
  int64_t width_per_group = 64;
  int64_t widen_factor = 1;
};

inline constexpr std::array<ResNetPreset, 20> kResNetPresets{{
    {"resnet18", 18},
    {"resnet34", 34},
    {"resnet50", 50},
    {"resnet101", 101},
    {"resnet152", 152},
    {"resnet200", 200},
    {"resnext50_32x4d", 50, "", 32, 4},
    {"resnext101_32x8d", 101, "", 32, 8},
    {"resnext101_64x4d", 101, "", 64, 4},
    {"wide_resnet50_2", 50, "", 1, 128},
    {"wide_resnet101_2", 101, "", 1, 128},
    {"resnet20", 20},
    {"resnet32", 32},
    {"resnet44", 44},
    {"resnet56", 56},
    {"resnet110", 110},
    {"wrn16_8", 16, "v2", 1, 64, 8},
    {"wrn28_10", 28, "v2", 1, 64, 10},
    {"wrn40_2", 40, "v2", 1, 64, 2},
    {"wrn40_4", 40, "v2", 1, 64, 4},
}};

/// `[model]` of a residual network (models/images/resnet.h): those of He et al. 2015
/// (arXiv:1512.03385) and 2016 (v2, arXiv:1603.05027), ResNeXt (Xie et al. 2017, arXiv:1611.05431)
/// and wide ones (Zagoruyko and Komodakis 2016, arXiv:1605.07146).
///
/// Depths 18, 34, 50, 101, 152 and 200 have four stages, as for ImageNet. Other depths have three,
/// as for CIFAR: 6 n + 2, or 6 n + 4 as wide networks are counted, with n blocks a stage.
struct ResNetOptions {
  static constexpr const char* kName = "resnet";

  std::string preset = "resnet50";
  int64_t depth = 0;
  std::string version = "auto";
  std::string stem = "auto";
  std::string shortcut = "auto";
  int64_t base_width = 0;
  int64_t widen_factor = 0;
  int64_t groups = 0;
  int64_t width_per_group = 0;
  bool zero_gamma = false;
  double block_dropout = 0.0;
  double drop_path = 0.0;
  double norm_momentum = 0.1;
  double norm_epsilon = 1e-5;
  std::vector<std::string> init;

  static auto shape_fields() {
    using namespace config;
    using O = ResNetOptions;
    return Fields{
        field(&O::base_width, "base_width",
              "channels of the first stage, before groups and widen_factor; each stage has twice "
              "those of the one before; 0 = 64 with four stages, 16 with three",
              between(0, 65536))
            .also_called({"inplanes", "num_filters", "stem_width", "width"}),
        field(&O::widen_factor, "widen_factor",
              "the channels of all stages, but for the first convolution, are so many times wider "
              "(wide ResNets); 0 = as the preset",
              between(0, 1024))
            .also_called({"widen", "wide_factor", "width_factor"}),
        field(&O::groups, "groups",
              "of the 3 x 3 convolution of a bottleneck (ResNeXt's cardinality); 0 = as the preset",
              between(0, 65536))
            .also_called({"cardinality", "num_groups"}),
        field(&O::width_per_group, "width_per_group",
              "channels of a group of a bottleneck of the first stage, where 64 channels without "
              "groups are ResNet's: 4 with 32 groups is 32x4d; 0 = as the preset",
              between(0, 65536))
            .also_called({"bottleneck_width", "width_group"}),
    };
  }

  static auto fields() {
    using namespace config;
    using O = ResNetOptions;
    const Meta hidden{.hidden_in_shapes = true};
    std::vector<std::string> presets{"none"};
    for (const ResNetPreset& preset : kResNetPresets) presets.emplace_back(preset.name);
    return Fields{
        field(&O::preset, "preset",
              "a published network by its name; with none the keys below give it",
              one_of(std::move(presets)))
            .also_called({"arch", "architecture", "model_type", "variant"})
            .value_also_called("wrn28_10", {"wide_resnet28_10"})
            .value_also_called("wide_resnet50_2", {"wrn50_2", "wide_resnet50"})
            .value_also_called("resnext50_32x4d", {"resnext50"}),
        field(&O::depth, "depth",
              "layers with weights: 18, 34, 50, 101, 152, 200, or 6 n + 2 and 6 n + 4 with three "
              "stages (20, 32, 44, 56, 110; 16, 28, 40); 0 = as the preset",
              between(0, 2000))
            .also_called({"resnet_size", "num_layers", "layers", "n_layers"}),
        field(&O::version, "version",
              "where a bottleneck strides and norms stand. v1: in its first 1 x 1 convolution (He "
              "et al. 2015); v1.5: in its 3 x 3 (Goyal et al., torchvision); v2: norms and relu in "
              "front of convolutions. auto: v2 of the presets wrn…, else v1.5",
              one_of({"auto", "v1", "v1.5", "v2"}), hidden)
            .also_called({"resnet_version"})
            .value_also_called("v1", {"1", "post_activation"})
            .value_also_called("v1.5", {"1.5", "v1b"})
            .value_also_called("v2", {"2", "preact", "pre_activation"}),
        field(&O::stem, "stem",
              "the first layers. imagenet: 7 x 7 with stride 2, max pooling; cifar: 3 x 3. auto: "
              "imagenet with four stages",
              one_of({"auto", "imagenet", "cifar"}))
            .also_called({"stem_type", "first_layer"})
            .value_also_called("cifar", {"small", "3x3"}),
        field(
            &O::shortcut, "shortcut",
            "where a block changes the shape. A: every second pixel, and channels of zeros "
            "around; B: a 1 x 1 convolution; C: one in every block (He et al. 2015, section 4.1). "
            "auto: A with three stages of v1, else B",
            one_of({"auto", "A", "B", "C"}))
            .also_called({"shortcut_type", "option", "downsample"})
            .value_also_called("A", {"padding", "identity", "pad"})
            .value_also_called("B", {"projection", "conv1x1"})}
        .with(shape_fields())
        .with(Fields{
            field(&O::zero_gamma, "zero_gamma",
                  "the last norm of each block starts with a gain of 0, so that the block adds "
                  "nothing at first (Goyal et al. 2017); v1 and v1.5",
                  any())
                .also_called({"zero_init_residual", "zero_init_last", "zero_init_gamma",
                              "last_gamma", "zero_gain"}),
            field(&O::block_dropout, "block_dropout",
                  "in front of the last convolution of each block (wide ResNets; 0.3 is usual)",
                  fraction())
                .also_called({"dropout", "drop_rate", "dropout_rate", "dropRate"}),
            field(&O::drop_path, "drop_path",
                  "share of samples for which the last block adds nothing; that of the blocks "
                  "before it grows evenly (stochastic depth; Huang et al. 2016, arXiv:1603.09382)",
                  fraction())
                .also_called({"drop_path_rate", "stochastic_depth", "stochastic_depth_prob"}),
        })
        .with(batch_norm_fields<O>())
        .with(Fields{nn::init_field(&O::init)});
  }
};

enum class ResNetVersion : uint8_t { kV1, kV15, kV2 };
enum class ResNetShortcut : uint8_t { kPadding, kProjection, kAllProjections };

/// What the keys and the preset come to.
struct ResNetShape {
  std::vector<int64_t> blocks;  ///< of each stage; empty for a depth that there is none of
  bool bottleneck = false;      ///< three convolutions a block, the last four times as wide
  ResNetVersion version = ResNetVersion::kV15;
  ResNetShortcut shortcut = ResNetShortcut::kProjection;
  bool has_large_stem = true;  ///< 7 x 7 and pooling
  int64_t stem_width = 64;     ///< channels behind the first convolution
  int64_t stage_width = 64;    ///< of the first stage, widened; doubled in each further one
  int64_t groups = 1, width_per_group = 64;

  int64_t expansion() const { return bottleneck ? 4 : 1; }
  /// Channels between the convolutions of a block of this stage, counted from 0.
  int64_t inner_width(int64_t stage) const {
    const int64_t planes = stage_width << stage;
    return bottleneck ? planes * width_per_group / 64 * groups : planes;
  }
  /// Channels behind a block of this stage.
  int64_t outer_width(int64_t stage) const { return (stage_width << stage) * expansion(); }
  int64_t num_stages() const { return static_cast<int64_t>(blocks.size()); }
  int64_t num_blocks() const {
    int64_t sum = 0;
    for (const int64_t count : blocks) sum += count;
    return sum;
  }
};

/// The preset of that name; one without a depth of "none", and of a name that is not known.
inline ResNetPreset resnet_preset(std::string_view name) {
  for (const ResNetPreset& preset : kResNetPresets) {
    if (preset.name == name) return preset;
  }
  return {};
}

/// The depth that the model has; 0 where neither the key nor a preset says one.
inline int64_t depth_of(const ResNetOptions& options) {
  return options.depth > 0 ? options.depth : resnet_preset(options.preset).depth;
}

namespace detail {

struct ResNetDepth {
  int64_t depth;
  std::array<int64_t, 4> blocks;
  bool bottleneck;
};
inline constexpr std::array<ResNetDepth, 6> kResNetDepths{{
    {18, {2, 2, 2, 2}, false},
    {34, {3, 4, 6, 3}, false},
    {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true},
    {152, {3, 8, 36, 3}, true},
    {200, {3, 24, 36, 3}, true},
}};

inline void set_blocks(int64_t depth, ResNetShape& shape) {
  for (const ResNetDepth& known : kResNetDepths) {
    if (known.depth != depth) continue;
    shape.blocks.assign(known.blocks.begin(), known.blocks.end());
    shape.bottleneck = known.bottleneck;
    return;
  }
  const int64_t first = depth % 6 == 2 ? 2 : 4;  // layers outside of blocks
  if (depth > first && (depth - first) % 6 == 0) {
    shape.blocks.assign(3, (depth - first) / 6);
  }
}

}  // namespace detail

inline ResNetShape shape_of(const ResNetOptions& options) {
  const ResNetPreset preset = resnet_preset(options.preset);
  const auto given = [](int64_t key, int64_t of_preset) { return key > 0 ? key : of_preset; };
  ResNetShape shape;
  detail::set_blocks(depth_of(options), shape);
  const bool has_three = shape.num_stages() == 3;
  const std::string version =
      options.version == "auto" ? std::string(preset.version) : options.version;
  if (version == "v1") shape.version = ResNetVersion::kV1;
  if (version == "v2") shape.version = ResNetVersion::kV2;
  const bool pads = has_three && shape.version != ResNetVersion::kV2;
  if (options.shortcut == "A" || (options.shortcut == "auto" && pads)) {
    shape.shortcut = ResNetShortcut::kPadding;
  }
  if (options.shortcut == "C") shape.shortcut = ResNetShortcut::kAllProjections;
  shape.has_large_stem = options.stem == "auto" ? !has_three : options.stem == "imagenet";
  shape.stem_width = given(options.base_width, has_three ? 16 : 64);
  shape.stage_width = shape.stem_width * given(options.widen_factor, preset.widen_factor);
  shape.groups = given(options.groups, preset.groups);
  shape.width_per_group = given(options.width_per_group, preset.width_per_group);
  return shape;
}

}  // namespace stretto::models
