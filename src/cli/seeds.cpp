#include "cli/seeds.h"

#include <filesystem>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/program_path.h"
#include "cli/configuration_file.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "experiment/data_files.h"
#include "experiment/family_spec.h"
#include "experiment/preflight.h"
#include "experiment/same_experiment.h"
#include "experiment/task_rules.h"
#include "seeds/seed_list.h"
#include "seeds/seeds_runner.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeedKey = "run.seed=";

void require_free_seed(const std::vector<std::string>& overrides) {
  for (const auto& word : overrides) {
    if (!word.starts_with(kSeedKey)) continue;
    throw Error(ExitCode::kUsage, word + " and --seeds both set the seed", "leave one of them out");
  }
}

std::string seed_override(int64_t seed) {
  return kSeedKey + std::to_string(seed);
}

experiment::LoadedExperiment load_seed(const SeedsRequest& request, int64_t seed) {
  auto overrides = request.overrides;
  overrides.push_back(seed_override(seed));
  return load_configuration(request.config, overrides,
                            seeds::seed_directory(request.directory, seed));
}

seeds::BestBy best_by(const experiment::Experiment& experiment) {
  for (const auto& score : experiment::find_task_rules(experiment)->scores(experiment)) {
    if (score.name() == experiment.eval.best_metric) {
      return {score.name(), score.higher_is_better()};
    }
  }
  return {.name = experiment.eval.best_metric};
}

}  // namespace

int train_seeds(const SeedsRequest& request) {
  require_own_start(
      "--seeds starts a process for each seed",
      "start it without mpirun, srun or torchrun; --processes N trains each seed with N");
  require_free_seed(request.overrides);
  const fs::path directory = request.directory;
  seeds::SeedsSetup setup{
      .directory = directory, .runs = {}, .command = {}, .accept_data = request.accept_data};
  bool has_looked = false;  // all seeds have the same files and the same model
  // Whatever can be refused is, before the first seed has trained for hours.
  for (const int64_t seed : seeds::parse_seeds(request.seeds)) {
    const auto experiment = load_seed(request, seed);
    const auto run_state = experiment::require_same_experiment(
        seeds::seed_directory(directory, seed), experiment, request.extend);
    if (run_state.begins && !std::exchange(has_looked, true)) {
      experiment::require_sound_start(experiment, engine_checks());
    }
    setup.runs.push_back(
        {seed, hex64(xxh3_64(experiment.resolved_toml + std::to_string(request.until)))});
    setup.best_by = best_by(experiment.options);
    setup.data_files = experiment::data_files_of(experiment.options);
    setup.digests = experiment::digest_setting_of(experiment.options);
    setup.display = experiment::display_of(experiment.options);
  }
  setup.command = [&](int64_t seed, const fs::path& run) {
    auto words = request.words(run.string());
    words.insert(words.begin(), program_path().string());
    words.insert(words.begin() + 3, seed_override(seed));  // behind the configuration
    return words;
  };
  seeds::SeedsRunner runner(std::move(setup));
  const int code = runner.run();
  std::cout << (request.json ? runner.json().dump(2) + "\n" : runner.table());
  return code;
}

void require_no_seeds(const std::string& directory) {
  std::error_code ignored;
  if (!fs::exists(seeds::seeds_path(directory), ignored)) return;
  throw Error(ExitCode::kUsage, directory + " holds the runs of several seeds",
              "train them on with --seeds, or one of them in its own folder " + directory +
                  "/seed_N with run.seed=N");
}

}  // namespace stretto::cli
