#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "models/images/airbench_options.h"
#include "models/images/alexnet_options.h"
#include "models/images/cifar_net_options.h"
#include "models/images/resnet_options.h"
#include "models/images/vit_options.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// `[model]` of a model that reads labels from pictures, as `model.name` says. All kinds have
/// `init`; ViT has `lora` and `adapter`.
///
/// A further kind is one more alternative here, and an overload in models/images/image_model.cpp
/// and in models/images/image_conflicts.cpp.
using ImageModelOptions =
    config::Choice<ResNetOptions, AlexNetOptions, CifarNetOptions, AirbenchOptions, VitOptions>;

/// The declaration of such a `[model]`, with what its names are called elsewhere.
template <class Declared>
Declared with_image_names_elsewhere(Declared model) {
  return std::move(model)
      .value_also_called("resnet",
                         {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext",
                          "wide_resnet", "wrn", "resnet20", "resnet32", "resnet44", "resnet56",
                          "resnet110", "resnetv2", "preact_resnet"},
                         "model.preset names its depth and form")
      .value_also_called("cifar_net", {"cifar_nv", "cnn"})
      .value_also_called("airbench", {"airbench94", "airbench95", "airbench96"},
                         "model.preset names its size")
      .value_also_called("vit", {"vision_transformer", "vit_base_patch16_224", "vit_b_16", "deit"},
                         "model.preset names its size");
}

inline const std::vector<std::string>& init_of(const ImageModelOptions& options) {
  return options.visit(
      [](const auto& kind) -> const std::vector<std::string>& { return kind.init; });
}
/// Off where the kind has no such key.
inline nn::LoraOptions lora_of(const ImageModelOptions& options) {
  return options.is<VitOptions>() ? options.as<VitOptions>().lora : nn::LoraOptions{};
}
inline nn::AdapterOptions adapter_of(const ImageModelOptions& options) {
  return options.is<VitOptions>() ? options.as<VitOptions>().adapter : nn::AdapterOptions{};
}

/// Whether the model normalises over the samples of a batch, so that none may be cut.
inline bool has_batch_norm(const ImageModelOptions& options) {
  return !options.is<AlexNetOptions>() && !options.is<VitOptions>();
}

/// Which heights and widths of pictures a model reads, in pixels.
struct ImageLimits {
  int64_t smallest = 1;
  int64_t only = 0;      ///< the one size that it reads; 0 = any
  int64_t multiple = 1;  ///< of what a side must be a multiple
};

inline ImageLimits image_limits_of(const AlexNetOptions& /*options*/) {
  return {.smallest = kAlexNetSmallestImage};
}
inline ImageLimits image_limits_of(const AirbenchOptions& /*options*/) {
  return {.smallest = kAirbenchSmallestImage};
}
inline ImageLimits image_limits_of(const CifarNetOptions& options) {
  return {.smallest = options.image_size, .only = options.image_size};
}
inline ImageLimits image_limits_of(const VitOptions& options) {
  const int64_t patch = std::max<int64_t>(sizes_of(options).patch_size, 1);
  return {.smallest = patch, .multiple = patch};
}
inline ImageLimits image_limits_of(const ResNetOptions& /*options*/) {
  return {};
}
inline ImageLimits image_limits_of(const ImageModelOptions& options) {
  return options.visit([](const auto& kind) { return image_limits_of(kind); });
}

/// What is wrong with pictures of this size; empty = nothing.
inline std::string image_size_problem(const ImageLimits& limits, int64_t height, int64_t width) {
  const auto pixels = [](int64_t size) { return std::to_string(size); };
  const std::string size = pixels(height) + " x " + pixels(width);
  if (limits.only > 0 && (height != limits.only || width != limits.only)) {
    return "the model reads pictures of " + pixels(limits.only) + " x " + pixels(limits.only) +
           " pixels alone, got " + size;
  }
  if (std::min(height, width) < limits.smallest) {
    return "the model reads pictures of at least " + pixels(limits.smallest) + " x " +
           pixels(limits.smallest) + " pixels, got " + size;
  }
  if (height % limits.multiple != 0 || width % limits.multiple != 0) {
    return "height and width of a picture must be multiples of model.patch_size, " +
           pixels(limits.multiple) + ", got " + size;
  }
  return "";
}

/// The size of pictures that the model is published with, in pixels: what `plan` assumes where
/// nothing else says one.
inline int64_t usual_image_of(const ImageModelOptions& options) {
  if (options.is<VitOptions>()) return sizes_of(options.as<VitOptions>()).image_size;
  if (options.is<AlexNetOptions>()) return 224;
  if (options.is<ResNetOptions>()) {
    return shape_of(options.as<ResNetOptions>()).has_large_stem ? 224 : 32;
  }
  return options.is<CifarNetOptions>() ? options.as<CifarNetOptions>().image_size : 32;
}

/// The number of training pictures that first weights are made of (airbench); 0 = none.
inline int64_t num_first_images(const ImageModelOptions& options) {
  return options.is<AirbenchOptions>() ? options.as<AirbenchOptions>().whiten_images : 0;
}

}  // namespace stretto::models
