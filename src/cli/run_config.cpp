#include "cli/run_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/folder_files.h"
#include "experiment/run_config.h"
#include "seeds/seeds_record.h"
#include "store/weight_files.h"

namespace stretto::cli {

namespace fs = std::filesystem;

namespace {

bool may_change(const config::Key& key, Reads reads) {
  if (reads == Reads::kOtherData && key.path.starts_with("data.")) return true;
  return config::is_free(key.meta.change) || key.path.starts_with("data.test_") ||
         (key.meta.change == config::Change::kReading && reads != Reads::kOwnData);
}

std::string what_may_change(const config::Schema& schema, Reads reads) {
  if (reads == Reads::kOtherData) {
    return "data.*, eval.*, decode.*, run.threads and run.device may be changed here";
  }
  std::vector<std::string> reading;
  for (const auto& key : schema.keys) {
    if (key.meta.change == config::Change::kReading) reading.push_back(key.path);
  }
  const std::string text =
      "decode.*, eval.*, run.threads, run.device and run.packed_weights may be changed here";
  if (reading.empty() || reads == Reads::kOwnData) return text;
  return text + ", and how files are read: " + join(reading, ", ");
}

/// A run's configuration as far as it can be read; no rule is asked.
struct StoredKeys {
  experiment::Experiment options;
  config::Origins origins;
  std::vector<config::Problem> problems;

  StoredKeys(const std::string& toml, const fs::path& path,
             const std::vector<std::string>& overrides) {
    experiment::Experiment fallback;
    origins = config::load_text(toml, path.string(), path.parent_path(), overrides,
                                experiment::experiment_schema(options),
                                experiment::experiment_schema(fallback), problems);
  }
  config::Schema schema() { return experiment::experiment_schema(options); }
};

std::string leaf_of(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

/// The keys that do for the command what a fixed key did in training: those that bound its batches,
/// or those of the same name, `eval.precision` for `train.precision`.
std::vector<std::string> keys_instead(const std::string& fixed, const config::Schema& schema,
                                      const std::vector<std::string>& batch_keys, Reads reads) {
  if (reads != Reads::kAnyData) return {};  // the command may read neither
  std::vector<std::string> same;
  const std::string leaf = leaf_of(fixed);
  for (const char* section : {"eval.", "decode."}) {
    const auto* key = schema.find(section + leaf);
    if (key != nullptr && may_change(*key, reads)) same.push_back(key->path);
  }
  const auto has_leaf = [&](const std::string& key) { return leaf_of(key) == leaf; };
  const bool bounds_batches =
      fixed.starts_with("data.") && (!same.empty() || std::ranges::any_of(batch_keys, has_leaf));
  return bounds_batches && !batch_keys.empty() ? batch_keys : same;
}

std::string did_you_mean(const std::vector<std::string>& keys) {
  std::vector<std::string> quoted;
  for (const auto& key : keys) quoted.push_back("`" + key + "`");
  return keys.empty() ? "" : "did you mean " + join(quoted, " or ") + "? ";
}

std::vector<std::string> batch_keys_of(const experiment::Experiment& options,
                                       FamilyCommandMember command) {
  const auto* family = experiment::find_family(options);
  if (command == nullptr || family == nullptr) return {};
  return (family->*command).batch_keys;
}

// Rules would blame keys of the stored file for what follows from an override of a fixed one.
void require_free_overrides(const std::string& toml, const fs::path& path,
                            const std::vector<std::string>& overrides, Reads reads,
                            FamilyCommandMember command) {
  if (overrides.empty()) return;
  StoredKeys now(toml, path, overrides);
  std::vector<config::Problem> fixed;
  for (const auto& key : now.schema().keys) {
    if (!now.origins.overridden(key.path) || may_change(key, reads)) continue;
    fixed.push_back({now.origins.of(key.path),
                     "fixed, since the run was trained with another value", "", key.path,
                     now.origins.order_of(key.path)});
  }
  if (fixed.empty()) return;
  StoredKeys stored(toml, path, {});
  const auto schema = stored.schema();
  const std::string advice = what_may_change(schema, reads);
  const auto batch_keys = batch_keys_of(stored.options, command);
  for (auto& problem : fixed) {
    problem.hint = did_you_mean(keys_instead(problem.key, schema, batch_keys, reads)) + advice;
  }
  // What else is wrong on the command line is told with it.
  auto problems = fixed;
  for (const auto& problem : now.problems) {
    const bool is_override = problem.order.source >= config::Order::kCommandLine &&
                             problem.order.source != config::Order::kNotGiven;
    if (is_override && !config::is_unreliable(fixed, problem.key)) problems.push_back(problem);
  }
  config::throw_problems(problems);
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
                                             const std::vector<std::string>& overrides, Reads reads,
                                             FamilyCommandMember command) {
  std::vector<ForeignPath> ignored;
  return load_run_config(run_directory, overrides, reads, KeepPaths::kNone, ignored, command);
}

experiment::LoadedExperiment load_run_config(const fs::path& run_directory,
                                             const std::vector<std::string>& overrides, Reads reads,
                                             KeepPaths keep, std::vector<ForeignPath>& left_out,
                                             FamilyCommandMember command) {
  require_run(run_directory);
  const fs::path path = run_directory / "config.toml";
  const std::string toml = experiment::read_run_config(run_directory);
  require_free_overrides(toml, path, overrides, reads, command);
  auto loaded = experiment::load_stored_experiment(toml, path.string(), overrides);
  experiment::take_files_of_folder(loaded, run_directory);
  left_out = take_foreign_paths(loaded, run_directory, keep);
  return loaded;
}

}  // namespace stretto::cli
