#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "experiment/experiment.h"

namespace stretto::experiment {

/// All keys of an experiment, with the names that other toolkits give them. It points into
/// `options`.
config::Schema experiment_schema(Experiment& options);

/// The same of an experiment that has every default, but the parts and the numbers of entries that
/// `present` has: what messages and comparisons read. It points into `fallback`.
config::Schema defaults_beside(const config::Schema& present, Experiment& fallback);

/// The keys of an experiment whose values are not the defaults, of those that `asked` holds for. A
/// stored configuration has all keys, so that values, and not their presence, show what was chosen.
/// The name of a part other than the default is one of them.
std::vector<std::string> changed_keys(const Experiment& experiment,
                                      const std::function<bool(const std::string&)>& asked);

}  // namespace stretto::experiment
