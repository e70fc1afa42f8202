#pragma once

#include <optional>
#include <string>

#include "families/image_classification/folders/image_names.h"
#include "interchange/tensors.h"
#include "models/images/image_model_options.h"

namespace stretto::interchange {

/// What the names and shapes of tensors tell of a model.
struct ImageWeights {
  std::string name;  ///< "resnet50", or "ResNet" where it has no such name
  models::ImageModelOptions model;
  ImageSpelling spelling = ImageSpelling::kTorchvision;
  int64_t num_labels = 0;
};

/// The ResNet whose tensors these are; nothing where their names are of no ResNet. Bottlenecks
/// stride in their 3 x 3 convolution, as torchvision's and timm's do.
/// Throws Error(kBadData) for a ResNet that there is none of here, such as one with squeeze and
/// excitation, and for a tensor of the wrong shape. @param where  file or folder, for messages
std::optional<ImageWeights> find_resnet(const TensorsByName& tensors, const std::string& where);
/// Whether their names are of a ResNet.
bool looks_like_resnet(const TensorsByName& tensors);

}  // namespace stretto::interchange
