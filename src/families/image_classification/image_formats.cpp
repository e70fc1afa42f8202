#include "families/image_classification/image_formats.h"

namespace stretto::experiment {

std::vector<ExportFormat> image_formats() {
  constexpr const char* kModels = "models of pictures also";
  return {transformers_format(),
          {.name = kTimmFormat, .models = kModels, .has_classes = true},
          {.name = kTorchvisionFormat, .models = kModels, .has_classes = true}};
}

}  // namespace stretto::experiment
