#include "experiment/model_comparison.h"

#include "experiment/experiment_schema.h"

namespace stretto::experiment {

ModelComparison::ModelComparison(const Experiment& theirs, const Experiment& own)
    : their_copy_(theirs),
      own_copy_(own),
      their_schema_(experiment_schema(their_copy_)),
      own_schema_(experiment_schema(own_copy_)) {}

std::vector<std::string> ModelComparison::hidden_keys() const {
  std::vector<std::string> keys;
  for (const auto& key : own_schema_.keys) {
    if (key.meta.hidden_in_shapes && their_schema_.find(key.path) != nullptr) {
      keys.push_back(key.path);
    }
  }
  return keys;
}

void ModelComparison::compare(const std::string& key) {
  compare(key, config::value_text(their_schema_.find(key)->value),
          config::value_text(own_schema_.find(key)->value));
}

void ModelComparison::compare(const std::string& key, const std::string& theirs,
                              const std::string& own) {
  if (theirs != own) found_.push_back({key, theirs, own});
}

}  // namespace stretto::experiment
