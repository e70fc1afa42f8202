#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "store/safetensors.h"

/// Model files with packed tensors (store/quantised_file.h), for those who want numbers: training
/// that begins with such a model, and exports.
namespace stretto::runs {

struct UnpackedWeights {
  store::SafetensorsFile file;
  std::vector<at::Tensor> values = {};  ///< what was unpacked, in its shape
};

/// A model file as if it had never been packed: each packed tensor is there as F32 under its name,
/// all others as they are. The result looks into `file`, which must outlive it.
/// @param where  the file, for messages
/// Throws Error(kBadData) as store::QuantisedTensors does.
UnpackedWeights unpack_weights(const store::SafetensorsFile& file, const std::string& where);

/// For those who need all bits of a weight. Throws Error(kUsage) where the file has packed tensors.
/// @param what  is asked for: "training does not go on"
void require_unpacked(const store::SafetensorsFile& file, const std::string& where,
                      const std::string& what, const std::string& advice);

}  // namespace stretto::runs
