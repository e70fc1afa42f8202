#include "families/language_model/language_model_formats.h"

#include "families/text/export_formats.h"

namespace stretto::experiment {

std::vector<ExportFormat> language_model_formats() {
  return {transformers_format(),
          ctranslate2_format("language models"),
          {.name = kGgufFormat,
           .models = "language models of Llama's form",
           .weights = {StoredWeights::kFloat32, StoredWeights::kInt8, StoredWeights::kFloat16},
           .is_file = true}};
}

}  // namespace stretto::experiment
