#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "experiment/experiment.h"
#include "experiment/task_rules.h"

namespace stretto::experiment {

/// Two experiments of one family, whose keys of `[model]` are compared by their values.
class ModelComparison {
 public:
  ModelComparison(const Experiment& theirs, const Experiment& own);
  ModelComparison(const ModelComparison&) = delete;
  ModelComparison& operator=(const ModelComparison&) = delete;

  const config::Schema& theirs() const { return their_schema_; }
  const config::Schema& own() const { return own_schema_; }

  /// Keys of the own experiment that shapes of tensors may hide (config::Meta).
  std::vector<std::string> hidden_keys() const;

  /// A key that may have another name there, as the configurations have it. A key that only one of
  /// them has differs in nothing.
  void compare(const std::string& key, const std::string& key_there);
  void compare(const std::string& key) { compare(key, key); }
  /// Values as they count, where a key says less than them.
  void compare_values(const ModelDifference& values);

  const std::vector<ModelDifference>& found() const { return found_; }

 private:
  Experiment their_copy_, own_copy_;  // the schemas are bound to them
  config::Schema their_schema_, own_schema_;
  std::vector<ModelDifference> found_;
};

}  // namespace stretto::experiment
