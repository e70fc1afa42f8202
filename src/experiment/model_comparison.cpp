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
    if (key.meta.hidden_in_shapes) keys.push_back(key.path);
  }
  return keys;
}

void ModelComparison::compare(const std::string& key, const std::string& key_there) {
  const auto *theirs = their_schema_.find(key_there), *own = own_schema_.find(key);
  if (theirs == nullptr || own == nullptr) return;
  compare_values({.key = key,
                  .theirs = config::value_text(theirs->value),
                  .own = config::value_text(own->value),
                  .key_there = key_there});
}

void ModelComparison::compare_values(const ModelDifference& values) {
  if (values.theirs != values.own) found_.push_back(values);
}

}  // namespace stretto::experiment
