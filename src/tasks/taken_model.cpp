#include "tasks/taken_model.h"

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"
#include "experiment/text_sections.h"

namespace stretto::tasks {
namespace {

/// The configuration of another run; nothing outside of a run, or where it cannot be read.
struct OtherExperiment {
  std::optional<experiment::Experiment> options;
  std::string problem;  ///< why it cannot be read
};

OtherExperiment experiment_of(const runs::InitialRun& run) {
  const auto path = run.folder / "config.toml";
  if (run.folder.empty() || !std::filesystem::exists(path)) return {};
  try {
    return {experiment::load_stored_experiment(experiment::read_run_config(run.folder),
                                               path.string(), {})
                .options,
            ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace

void require_alike_model(const runs::InitialRun& run, const experiment::Experiment& own) {
  const auto* rules = experiment::find_task_rules(own);
  const auto [theirs, problem] = experiment_of(run);
  if (!problem.empty()) {
    log::warn("train.init_from: the [model] of " + run.folder.string() +
              " is not compared with this one: " + problem);
  }
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

bool has_another_head(const runs::InitialRun& run, const experiment::Experiment& own) {
  const auto theirs = experiment_of(run).options;
  if (!theirs || theirs->task.name() == own.task.name()) return false;
  const auto sections = experiment::find_text_sections(*theirs);
  return sections && sections->model->head != "none";
}

}  // namespace stretto::tasks
