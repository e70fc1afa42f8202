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

  /// Keys that both have, and that shapes of tensors may hide (config::Meta).
  std::vector<std::string> hidden_keys() const;

  /// As the configurations have it: a key that both have.
  void compare(const std::string& key);
  /// Values as they count, where a key says less than them.
  void compare(const std::string& key, const std::string& theirs, const std::string& own);

  const std::vector<ModelDifference>& found() const { return found_; }

 private:
  Experiment their_copy_, own_copy_;  // the schemas are bound to them
  config::Schema their_schema_, own_schema_;
  std::vector<ModelDifference> found_;
};

}  // namespace stretto::experiment
