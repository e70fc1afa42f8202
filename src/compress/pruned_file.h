#pragma once

#include <ATen/core/Tensor.h>

#include <set>
#include <string>
#include <vector>

#include "compress/masks.h"
#include "store/safetensors.h"

namespace stretto::compress {

/// A model file after pruning, as if it were a file.
struct PrunedFile {
  store::SafetensorsFile file;
  std::vector<at::Tensor> values = {};  ///< of those tensors that changed
  PackedMasks masks = {};               ///< of what is zero now
};

/// Prunes tensors of a model file: compress::prune_tensors(). Those that are pruned become F32, the
/// others look into `model`, which must outlive the result.
/// @param names  matrices of floating-point numbers
/// @param scope  "global", "layer" or "block"
/// Throws Error(kUsage) that names a tensor of which nothing would be left.
PrunedFile prune_file(const store::SafetensorsFile& model, const std::set<std::string>& names,
                      double sparsity, const std::string& scope);

/// Masks of which a weight is pruned that either has.
PackedMasks joined(PackedMasks masks, const PackedMasks& others);

}  // namespace stretto::compress
