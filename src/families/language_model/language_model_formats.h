#pragma once

#include <vector>

#include "experiment/family_export.h"

namespace stretto::experiment {

inline constexpr const char* kGgufFormat = "gguf";

/// How `stretto export` writes language models.
std::vector<ExportFormat> language_model_formats();

}  // namespace stretto::experiment
