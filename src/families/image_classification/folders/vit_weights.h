#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "families/image_classification/folders/resnet_weights.h"
#include "interchange/tensors.h"

namespace stretto::interchange {

/// The vision transformer whose tensors these are, by the names of torchvision or of timm; nothing
/// where they have neither.
/// @param num_heads  which no shape tells; 0 = as published models of that width have
/// Throws Error(kBadData) for another width than those where num_heads is 0, for a model that is
/// none here, and for a tensor of the wrong shape. @param where  file or folder, for messages
std::optional<ImageWeights> find_vit(const TensorsByName& tensors, int64_t num_heads,
                                     const std::string& where);
/// Whether their names are of a vision transformer.
bool looks_like_vit(const TensorsByName& tensors);

/// The published name of these sizes; empty where there is none.
std::string vit_preset_of(const models::VitSizes& sizes);

}  // namespace stretto::interchange
