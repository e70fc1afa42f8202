#include "cli/run_config.h"

#include "base/error.h"
#include "base/text.h"
#include "experiment/experiment_schema.h"
#include "experiment/run_config.h"
#include "seeds/seeds_record.h"
#include "store/weight_files.h"

namespace stretto::cli {

namespace fs = std::filesystem;

namespace {

bool may_change(const config::Key& key, Reads reads) {
  return config::is_free(key.meta.change) || key.path.starts_with("data.test_") ||
         (key.meta.change == config::Change::kReading && reads == Reads::kAnyText);
}

std::string what_may_change(const config::Schema& schema, Reads reads) {
  std::vector<std::string> reading;
  for (const auto& key : schema.keys) {
    if (key.meta.change == config::Change::kReading) reading.push_back(key.path);
  }
  const std::string text = "decode.*, eval.*, run.threads and run.device may be changed here";
  if (reading.empty() || reads == Reads::kOwnText) return text;
  return text + ", and how files are read: " + join(reading, ", ");
}

std::string advice_without_run(const fs::path& folder, const std::string& otherwise) {
  const std::string advice = store::import_advice(folder);
  return advice.empty() ? otherwise : advice;
}

}  // namespace

void require_run(const fs::path& run_directory) {
  if (!fs::is_directory(run_directory)) {
    throw Error(ExitCode::kUsage, "no run folder at " + run_directory.string(),
                "train first: stretto train CONFIG --run " + run_directory.string());
  }
  if (!fs::exists(run_directory / "config.toml") || !fs::exists(run_directory / "run.json")) {
    if (fs::exists(seeds::seeds_path(run_directory))) {
      throw Error(ExitCode::kUsage, run_directory.string() + " holds the runs of several seeds",
                  "give one of them: " + run_directory.string() + "/seed_N");
    }
    throw Error(ExitCode::kUsage,
                run_directory.string() + " is not a run: config.toml or run.json is missing",
                advice_without_run(run_directory, "give the folder that `stretto train` wrote"));
  }
}

experiment::LoadedExperiment load_run_config(const fs::path& run_directory,
                                             const std::vector<std::string>& overrides,
                                             Reads reads) {
  require_run(run_directory);
  const fs::path path = run_directory / "config.toml";
  auto loaded = experiment::load_stored_experiment(experiment::read_run_config(run_directory),
                                                   path.string(), overrides);
  std::vector<config::Problem> problems;
  const auto schema = experiment::experiment_schema(loaded.options);
  for (const auto& key : schema.keys) {
    if (!loaded.origins.overridden(key.path) || may_change(key, reads)) continue;
    problems.push_back({loaded.origins.of(key.path),
                        "fixed, since the run was trained with another value",
                        what_may_change(schema, reads)});
  }
  config::throw_problems(problems);
  return loaded;
}

}  // namespace stretto::cli
