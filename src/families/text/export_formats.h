#pragma once

#include <string>
#include <vector>

#include "experiment/family_export.h"

/// Formats of `stretto export` that several families write.
namespace stretto::experiment {

inline constexpr const char* kCtranslate2Format = "ctranslate2";
inline constexpr const char* kOnnxFormat = "onnx";

/// @param models  ExportFormat::models
ExportFormat ctranslate2_format(std::string models);

/// Those of encoders of text, whatever is read from them.
std::vector<ExportFormat> encoder_formats();

}  // namespace stretto::experiment
