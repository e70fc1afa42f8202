#pragma once

#include <string_view>
#include <vector>

#include "compress/masks.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"

/// The masks of pruned weights in a checkpoint:
///
///     masks.safetensors        <parameter>           U8 [(weights + 7) / 8], a bit for each weight
///                                                    as compress::PackedMasks have it
///
/// The file is there when a weight is pruned. The weights are zero in model.safetensors too, so
/// that whoever only reads a model needs no masks; a run that goes on, or begins with it, does.
namespace stretto::runs {

/// The file's stem.
inline constexpr std::string_view kMasksFile = "masks";

/// The tensors of the file; they look at the bytes of the masks.
std::vector<store::TensorView> mask_views(const compress::PackedMasks& masks);

/// The masks of a checkpoint; empty when it has none. Throws Error(kBadData) that names the tensor
/// that is no mask.
compress::PackedMasks stored_masks(const store::LoadedCheckpoint& checkpoint);

}  // namespace stretto::runs
