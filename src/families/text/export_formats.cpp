#include "families/text/export_formats.h"

#include <utility>

namespace stretto::experiment {

ExportFormat ctranslate2_format(std::string models) {
  return {.name = kCtranslate2Format,
          .models = std::move(models),
          .weights = {StoredWeights::kFloat32, StoredWeights::kInt8}};
}

std::vector<ExportFormat> encoder_formats() {
  return {transformers_format(),
          {.name = kOnnxFormat,
           .models = "encoders of text",
           .weights = {StoredWeights::kFloat32, StoredWeights::kInt8}}};
}

}  // namespace stretto::experiment
