#include "experiment/family_export.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::experiment {
std::vector<std::string> stored_weights_names() {
  return {"auto", name_of_weights(StoredWeights::kFloat32),
          name_of_weights(StoredWeights::kFloat16), name_of_weights(StoredWeights::kInt8)};
}

std::string name_of_weights(StoredWeights weights) {
  switch (weights) {
    case StoredWeights::kFloat32:
      return "float32";
    case StoredWeights::kFloat16:
      return "float16";
    case StoredWeights::kInt8:
      break;
  }
  return "int8";
}

bool ExportFormat::stores(StoredWeights one) const {
  return std::ranges::count(weights, one) > 0;
}

ExportFormat transformers_format() {
  return {.name = kTransformersFormat, .has_classes = true};
}

StoredWeights choose_stored_weights(const std::string& wanted, bool is_packed,
                                    const ExportFormat& format) {
  if (wanted == "auto") {
    const bool fits = is_packed && format.stores(StoredWeights::kInt8);
    return fits ? StoredWeights::kInt8 : format.weights.front();
  }
  std::vector<std::string> names;
  for (const StoredWeights one : format.weights) {
    if (name_of_weights(one) == wanted) return one;
    names.push_back(name_of_weights(one));
  }
  throw Error(
      ExitCode::kUsage,
      "--weights " + wanted + ": a model of --format " + format.name + " does not store them so",
      "weights for it: " + join(names, ", "));
}

}  // namespace stretto::experiment
