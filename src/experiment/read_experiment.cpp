#include "experiment/read_experiment.h"

#include "experiment/experiment_schema.h"
#include "experiment/rules.h"

namespace stretto::experiment {

ReadExperiment read_experiment(const std::filesystem::path& path,
                               const std::vector<std::string>& overrides,
                               const ReadContext& read_context, Experiment& options,
                               Experiment& fallback, std::vector<config::Problem>& problems) {
  const auto read = [&](const config::InheritedValues& inherited) {
    return config::load_file(path, overrides, experiment_schema(options),
                             experiment_schema(fallback), problems, inherited);
  };
  ReadExperiment found{.origins = read({}), .taken = {}};
  if (options.train.init_from.empty() || !readable(problems)) return found;
  if (config::is_unreliable(problems, "train.init_from")) return found;
  const auto other = find_other_model(options, read_context);
  if (!other) return found;
  found.has_model = other->is_own;
  const auto inherited = inherited_values(*other, options, found.origins);
  if (inherited.toml.empty()) return found;
  // Parts and entries of lists may be the other model's, so that everything is read once more.
  options = {};
  fallback = {};
  problems.clear();
  found.origins = read(inherited);
  if (!other->is_own) found.taken = taken_text(options, found.origins, *other);
  return found;
}

void forget_initial_run(const ReadExperiment& read, std::vector<config::Problem>& missing) {
  if (!read.has_model) return;
  std::erase_if(missing, [](const auto& problem) { return problem.key == "train.init_from"; });
}

}  // namespace stretto::experiment
