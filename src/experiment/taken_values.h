#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

/// What `train.init_from` names, and what a family takes from it
/// (TaskRules::values_of_other_model).
namespace stretto::experiment {

/// The model whose weights a run begins with, or that it has already.
struct OtherModel {
  Experiment options;
  std::vector<std::string> tensors;  ///< their names; read with `train.init_only` alone
  std::string name;                  ///< the folder, for messages
  bool is_own = false;  ///< that of the run that goes on: `train.init_only` was applied already
};

/// A value that a key takes when nothing gives one.
struct TakenValue {
  std::string key;
  std::string value;  ///< as TOML writes it
};

}  // namespace stretto::experiment
