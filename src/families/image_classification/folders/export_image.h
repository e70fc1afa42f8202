#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "families/image_classification/folders/image_description.h"
#include "store/safetensors.h"

namespace stretto::interchange {

/// A model of pictures to be written.
struct ExportedImageModel {
  ImageDescription description;
  std::vector<store::TensorView> tensors;  ///< under the names of models::ImageModel
};

/// The formats of `stretto export` for models of pictures:
///
///     hf           config.json, preprocessor_config.json, model.safetensors, which `transformers`
///                  loads
///     timm         config.json, model.safetensors, which timm.create_model("local-dir:…") loads
///     torchvision  model.safetensors by torchvision's names, and labels.txt; a ResNet for CIFAR by
///                  those that programs on GitHub have
///
/// A new folder appears at once and whole; one that is there must be empty. Returns the name of the
/// class, or of the function that makes the model.
/// @param model_type  of `transformers`, or "auto"
/// Throws Error(kUsage) where the folder is not empty, and with the reason where a format cannot
/// express the model; Error(kBadData) for tensors that are not the model's, Error(kIo).
std::string export_image(const ExportedImageModel& model, const std::string& format,
                         const std::string& model_type, const std::filesystem::path& folder);

}  // namespace stretto::interchange
