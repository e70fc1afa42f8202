#pragma once

#include <vector>

#include "experiment/family_export.h"

namespace stretto::experiment {

inline constexpr const char* kTimmFormat = "timm";
inline constexpr const char* kTorchvisionFormat = "torchvision";

/// How `stretto export` writes models of pictures (folders/export_image.h).
std::vector<ExportFormat> image_formats();

}  // namespace stretto::experiment
