#pragma once

#include <string>
#include <vector>

#include "data/pairs/data_options.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// One decoder with its text.
struct Head {
  std::string name;               ///< empty where the model has one decoder alone
  double weight = 1, repeat = 1;  ///< model.heads.weight, data.heads.repeat
  data::DataOptions data;         ///< `[data]` as it is for this head, without `heads`
  std::string section = "data";   ///< where its files are named: "data.heads.1"

  /// "training text", and of several heads "training text of `de`".
  std::string called(const std::string& what) const {
    return name.empty() ? what : what + " of `" + name + "`";
  }
  /// "nll", and of several heads "de.nll".
  std::string score(const std::string& what) const {
    return name.empty() ? what : name + "." + what;
  }
  bool has_validation() const;
};

/// The heads in the order of model.heads; of a model with one decoder a single one. Those without
/// an entry in data.heads, which is an error (experiment/rules.h), are left out.
std::vector<Head> heads_of(const Experiment& experiment);

/// The names of model.heads, in order; none where the model has one decoder.
std::vector<std::string> head_names(const Experiment& experiment);

/// Whether there is validation text, of any head.
bool has_validation(const Experiment& experiment);

/// The number of a head by its name.
/// @param wanted  empty only where the model has one decoder: 0
/// Throws Error(kUsage) for no name where there are several, a name where there is one decoder, and
/// a name that there is not. @param option  that gave it: "--head"
size_t head_named(const Experiment& experiment, const std::string& wanted,
                  const std::string& option);

}  // namespace stretto::experiment
