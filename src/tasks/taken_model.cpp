#include "tasks/taken_model.h"

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"

namespace stretto::tasks {
namespace {

std::optional<experiment::Experiment> experiment_of(const runs::InitialRun& run) {
  const auto path = run.folder / "config.toml";
  if (run.folder.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    return experiment::load_stored_experiment(experiment::read_run_config(run.folder),
                                              path.string(), {})
        .options;
  } catch (const Error& error) {
    log::warn("train.init_from: the [model] of " + run.folder.string() +
              " is not compared with this one: " + error.what());
    return std::nullopt;
  }
}

}  // namespace

void require_alike_model(const runs::InitialRun& run, const experiment::Experiment& own) {
  const auto* rules = experiment::find_task_rules(own);
  const auto theirs = experiment_of(run);
  if (rules == nullptr || !theirs) return;
  std::vector<std::string> lines;
  for (const auto& difference : rules->hidden_differences(*theirs, own)) {
    lines.push_back(difference.key + ": " + difference.theirs + " there, " + difference.own +
                    " here");
  }
  if (lines.empty()) return;
  const std::string what = "train.init_from: the weights of " + run.place().string() +
                           " belong to another model: " + join(lines, "; ");
  if (!own.train.init_only.empty()) return log::warn(what);
  throw Error(ExitCode::kUsage, what,
              "give [model] the values of that run (its config.toml); train.init_only takes the "
              "tensors that it names all the same");
}

}  // namespace stretto::tasks
