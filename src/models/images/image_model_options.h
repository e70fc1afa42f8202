#pragma once

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

/// The only height and width that the model takes; 0 = any of at least smallest_image_of().
inline int64_t only_image_of(const ImageModelOptions& options) {
  return options.is<CifarNetOptions>() ? options.as<CifarNetOptions>().image_size : 0;
}

/// The smallest height and width of a picture that the model takes.
inline int64_t smallest_image_of(const ImageModelOptions& options) {
  if (options.is<AlexNetOptions>()) return kAlexNetSmallestImage;
  if (options.is<AirbenchOptions>()) return kAirbenchSmallestImage;
  if (options.is<VitOptions>()) return sizes_of(options.as<VitOptions>()).patch_size;
  const int64_t only = only_image_of(options);
  return only > 0 ? only : 1;
}

/// What the height and width of a picture must be a multiple of.
inline int64_t image_multiple_of(const ImageModelOptions& options) {
  return options.is<VitOptions>() ? sizes_of(options.as<VitOptions>()).patch_size : 1;
}

/// The size of pictures that the model is published with, in pixels: what `plan` assumes where
/// nothing else says one.
inline int64_t usual_image_of(const ImageModelOptions& options) {
  if (options.is<VitOptions>()) return sizes_of(options.as<VitOptions>()).image_size;
  if (options.is<AlexNetOptions>()) return 224;
  if (options.is<ResNetOptions>()) {
    return shape_of(options.as<ResNetOptions>()).has_large_stem ? 224 : 32;
  }
  const int64_t only = only_image_of(options);
  return only > 0 ? only : 32;
}

/// The number of training pictures that first weights are made of (airbench); 0 = none.
inline int64_t num_first_images(const ImageModelOptions& options) {
  return options.is<AirbenchOptions>() ? options.as<AirbenchOptions>().whiten_images : 0;
}

}  // namespace stretto::models
