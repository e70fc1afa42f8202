#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "families/image_classification/folders/image_description.h"
#include "families/image_classification/folders/image_names.h"
#include "interchange/import_options.h"
#include "interchange/imported_run.h"

namespace stretto::interchange {

/// What describe() knows of a model: its experiment's parts, and which of its tensors are there.
struct DescribedImageModel {
  ImageDescription description;
  ImageSpelling spelling = ImageSpelling::kTransformers;
};

/// A folder of `transformers` (ResNetForImageClassification, ViTForImageClassification) or of
/// timm, or a file of weights by the names of torchvision, timm or the ResNets for CIFAR. Reads no
/// weights of `transformers`. Throws as import_image().
DescribedImageModel describe_image_model(const std::filesystem::path& place,
                                         const ImportOptions& options);

/// Reads such a model. Writes nothing. The run's files are the names of its classes, labels.json.
/// Throws as import_folder() does, and Error(kUsage) for a folder of `transformers` without
/// preprocessor_config.json.
ImportedRun import_image(const std::filesystem::path& place, const ImportOptions& options = {});

/// Whether the names of tensors are of a model that import_image() reads from a file alone.
bool are_image_weights(const std::vector<store::TensorView>& tensors);

}  // namespace stretto::interchange
