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

/// Sizes of the three groups of layers, and how many convolutions each has.
struct AirbenchSizes {
  int64_t width1 = 0, width2 = 0, width3 = 0;
  int64_t convolutions = 2;
};

struct AirbenchPreset {
  std::string_view name;
  AirbenchSizes sizes;
};

inline constexpr std::array<AirbenchPreset, 3> kAirbenchPresets{{
    {"airbench94", {64, 256, 256, 2}},
    {"airbench95", {128, 384, 384, 2}},
    {"airbench96", {128, 384, 512, 3}},
}};

/// `[model]` of Keller Jordan's networks that reach 94 and 96 % on CIFAR-10 fastest
/// (arXiv:2404.00498; github.com/KellerJordan/cifar10-airbench; models/images/airbench.h).
struct AirbenchOptions {
  static constexpr const char* kName = "airbench";

  std::string preset = "airbench94";
  int64_t width1 = 0, width2 = 0, width3 = 0;
  int64_t convolutions = 0;
  double head_scale = 0;
  int64_t whiten_images = 5000;
  double whiten_epsilon = 5e-4;
  int64_t whiten_bias_epochs = 3;
  double norm_momentum = 0.4;
  double norm_epsilon = 1e-12;
  std::vector<std::string> init;

  static auto size_fields() {
    using namespace config;
    using O = AirbenchOptions;
    const Range width = between(0, 65536);
    return Fields{
        field(&O::width1, "width1", "channels of the first group; 0 = as the preset", width)
            .also_called({"block1"}),
        field(&O::width2, "width2", "channels of the second group; 0 = as the preset", width)
            .also_called({"block2"}),
        field(&O::width3, "width3", "channels of the third group; 0 = as the preset", width)
            .also_called({"block3"}),
        field(&O::convolutions, "convolutions",
              "in each group, 2 or 3; with 3 a residual connection passes the last two; 0 = as the "
              "preset",
              between(0, 3))
            .also_called({"depth"}),
    };
  }

  static auto fields() {
    using namespace config;
    using O = AirbenchOptions;
    return Fields{field(&O::preset, "preset",
                        "airbench94: 64, 256 and 256 channels, two convolutions a group; "
                        "airbench95: 128, 384, 384, two; airbench96: 128, 384, 512, three; with "
                        "none the keys below give them",
                        one_of({"none", "airbench94", "airbench95", "airbench96"}))
                      .also_called({"arch", "architecture", "variant"})
                      .value_also_called("airbench94", {"94", "cifarnet"})
                      .value_also_called("airbench96", {"96"})}
        .with(size_fields())
        .with(Fields{
            field(&O::head_scale, "head_scale",
                  "logits are multiplied by it; 0 = 1 / width3 with Muon's recipe "
                  "(airbench94_muon.py), whose head starts with rows of deviation 1. Otherwise the "
                  "head starts as PyTorch's linear layers do (1/9 in the other recipes)",
                  between(0, 100), {.hidden_in_shapes = true})
                .also_called({"scaling_factor"}),
            field(&O::whiten_images, "whiten_images",
                  "the first layer's filters are those that whiten the patches of so many training "
                  "pictures, and stay; 0 = they are drawn, and stay",
                  between(0, 100000000), {.unit = "pictures"}),
            field(&O::whiten_epsilon, "whiten_epsilon",
                  "added to the variance of each direction of a patch", greater(0)),
            field(&O::whiten_bias_epochs, "whiten_bias_epochs",
                  "epochs after which the bias of the first layer has no gradient", at_least(0),
                  {.unit = "epochs"}),
        })
        .with(batch_norm_fields<O>())
        .with(Fields{nn::init_field(&O::init)});
  }
};

/// The sizes of the model: each key that is given, else the preset's; 0 where neither says one.
inline AirbenchSizes sizes_of(const AirbenchOptions& options) {
  AirbenchSizes sizes{.convolutions = 0};
  for (const AirbenchPreset& preset : kAirbenchPresets) {
    if (preset.name == options.preset) sizes = preset.sizes;
  }
  if (options.width1 > 0) sizes.width1 = options.width1;
  if (options.width2 > 0) sizes.width2 = options.width2;
  if (options.width3 > 0) sizes.width3 = options.width3;
  if (options.convolutions > 0) sizes.convolutions = options.convolutions;
  return sizes;
}

/// The smallest height and width of a picture that leaves a pixel behind all poolings.
inline constexpr int64_t kAirbenchSmallestImage = 9;

}  // namespace stretto::models
