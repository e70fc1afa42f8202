#include "cli/run_config.h"

#include "base/error.h"
#include "experiment/experiment_schema.h"
#include "experiment/run_config.h"

namespace stretto::cli {

namespace fs = std::filesystem;

namespace {

bool may_change(const config::Key& key) {
  return key.meta.change == config::Change::kFree || key.path.starts_with("data.test_");
}

}  // namespace

void require_run(const fs::path& run_directory) {
  if (!fs::is_directory(run_directory)) {
    throw Error(ExitCode::kUsage, "no run folder at " + run_directory.string(),
                "train first: stretto train CONFIG --run " + run_directory.string());
  }
  if (!fs::exists(run_directory / "config.toml") || !fs::exists(run_directory / "run.json")) {
    throw Error(ExitCode::kUsage,
                run_directory.string() + " is not a run: config.toml or run.json is missing",
                "give the folder that `stretto train` wrote");
  }
}

experiment::LoadedExperiment load_run_config(const fs::path& run_directory,
                                             const std::vector<std::string>& overrides) {
  require_run(run_directory);
  const fs::path path = run_directory / "config.toml";
  auto loaded = experiment::load_stored_experiment(experiment::read_run_config(run_directory),
                                                   path.string(), overrides);
  std::vector<config::Problem> problems;
  for (const auto& key : experiment::experiment_schema(loaded.options).keys) {
    if (!loaded.origins.overridden(key.path) || may_change(key)) continue;
    problems.push_back({loaded.origins.of(key.path),
                        "fixed, since the run was trained with another value",
                        "decode.*, eval.*, run.threads and run.device may be changed here"});
  }
  config::throw_problems(problems);
  return loaded;
}

}  // namespace stretto::cli
