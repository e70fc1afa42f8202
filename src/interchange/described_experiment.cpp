#include "interchange/described_experiment.h"

#include <string>

#include "base/error.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/schedule_length.h"

namespace stretto::interchange {
namespace {

using experiment::Experiment;

constexpr int64_t kUpdates = 10'000;  // a configuration needs an end; nothing trains here

// Problems have lines of a text that was made of config.json, and that the user never sees.
std::string without_lines(std::string problems, const std::string& where) {
  const std::string end = ": ";
  for (size_t at = problems.find(where + ":"); at != std::string::npos;
       at = problems.find(where + ":")) {
    const size_t last = problems.find(end, at + where.size());
    problems.erase(at, last == std::string::npos ? last : last + end.size() - at);
  }
  return problems;
}

}  // namespace

void complete_described(Experiment& experiment) {
  experiment.train.max_steps = kUpdates;
  experiment::resolve_defaults(experiment, config::Origins());
}

experiment::LoadedExperiment load_described(const Experiment& described,
                                            const std::filesystem::path& folder) {
  Experiment options = described;
  const bool is_file = std::filesystem::is_regular_file(folder);
  const std::string where = (is_file ? folder : folder / "config.json").string();
  try {
    return experiment::load_stored_experiment(
        config::to_toml(experiment::experiment_schema(options)), where, {});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    throw Error(
        ExitCode::kBadData,
        where + " describes a model that Stretto refuses: " + without_lines(error.what(), where),
        "keys are named as in the configuration of a run; correct config.json, or copy it again");
  }
}

}  // namespace stretto::interchange
