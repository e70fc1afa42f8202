#include "runs/stored_masks.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace stretto::runs {

std::vector<store::TensorView> mask_views(const compress::PackedMasks& masks) {
  std::vector<store::TensorView> views;
  for (const auto& [name, bits] : masks) {
    views.push_back({name, store::DType::kU8, {static_cast<int64_t>(bits.size())}, bits});
  }
  return views;
}

compress::PackedMasks stored_masks(const store::LoadedCheckpoint& checkpoint) {
  compress::PackedMasks masks;
  const auto file = std::find_if(checkpoint.files.begin(), checkpoint.files.end(),
                                 [](const auto& one) { return one.first == kMasksFile; });
  if (file == checkpoint.files.end()) return masks;
  for (const auto& tensor : file->second.tensors()) {
    if (tensor.dtype != store::DType::kU8 || tensor.shape.size() != 1) {
      throw Error(ExitCode::kBadData,
                  checkpoint.directory.string() + "/masks.safetensors: `" + printable(tensor.name) +
                      "` is no mask: " + std::string(store::name_of(tensor.dtype)) + " of " +
                      counted(static_cast<int64_t>(tensor.shape.size()), "dimension") +
                      ", expected U8 of one",
                  "name another checkpoint, or set compress.prune.hold = false");
    }
    masks[tensor.name] = std::string(tensor.bytes);
  }
  return masks;
}

}  // namespace stretto::runs
