#include "experiment/load_experiment.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/read_experiment.h"
#include "experiment/schedule_length.h"
#include "experiment/task_rules.h"
#include "experiment/tensor_patterns.h"

namespace stretto::experiment {
namespace {

// Keys that are free to change, but not where they shape the updates of this experiment: the length
// of the run when the rate goes by it, eval.every when validations decide over the rate or the end.
std::vector<std::string> fixed_as_well(const Experiment& options) {
  std::vector<std::string> keys;
  if (options.schedule.needs_length() && options.schedule.total_steps == 0) {
    keys.emplace_back("train.max_steps");
    if (options.train.max_steps == 0) keys.emplace_back("train.max_epochs");
  }
  if (options.schedule.name == "plateau" || options.train.patience > 0 ||
      options.train.stop != "none") {
    keys.emplace_back("eval.every");
  }
  return keys;
}

std::string hash_of(const config::Schema& schema, const Experiment& options) {
  return hex64(config::fixed_hash(schema, fixed_as_well(options)));
}

/// Where a configuration comes from. For a run's stored one, only the files of overrides have to be
/// there.
enum class Source { kUser, kRun };

// What a run that was stored earlier means by today's keys.
void complete_stored(LoadedExperiment& loaded) {
  loaded.origins.drop_notes_on_files();
  // Stored with a default that training did not go by.
  auto& train = loaded.options.train;
  train.keep_last = std::max(train.keep_last, train.average_last);
  const TaskRules* task = find_task_rules(loaded.options);
  if (task != nullptr) task->complete_stored(loaded.options, loaded.origins);
}

// A run folder's config.toml is read up to a bound.
void require_storable(const std::string& toml) {
  constexpr size_t kRoomForSeal = 4096;
  if (toml.size() + kRoomForSeal <= kMaxSmallTextBytes) return;
  throw Error(
      ExitCode::kUsage,
      "the configuration has more than 1 MiB with all files that folders and patterns in it "
      "stand for",
      "join files, so that there are fewer");
}

// What `read(options, fallback, problems)` reads, checked by every rule; throws all problems
// together.
template <class Read>
LoadedExperiment load(const Read& read, Source source) {
  LoadedExperiment loaded;
  Experiment fallback;
  std::vector<config::Problem> problems;
  const ReadExperiment found = read(loaded.options, fallback, problems);
  loaded.origins = found.origins;
  loaded.taken = found.taken;
  resolve_defaults(loaded.options, loaded.origins);
  if (source == Source::kRun) complete_stored(loaded);
  const auto schema = experiment_schema(loaded.options);  // with the parts that were chosen
  if (readable(problems)) {
    auto missing = missing_files(schema, loaded.origins, problems, source == Source::kRun);
    forget_initial_run(found, missing);
    check_rules(loaded.options, loaded.origins, problems,
                source == Source::kUser ? Purpose::kTraining : Purpose::kUse);
    problems.insert(problems.end(), missing.begin(), missing.end());
  }
  config::throw_problems(problems);
  const auto defaults = experiment_schema(fallback);
  loaded.resolved_toml = config::to_toml(schema, &defaults);
  if (source == Source::kUser) require_storable(loaded.resolved_toml);
  loaded.config_hash = hash_of(schema, loaded.options);
  return loaded;
}

}  // namespace

std::string config_hash_of(const Experiment& experiment) {
  Experiment options = experiment;
  return hash_of(experiment_schema(options), options);
}

LoadedExperiment load_experiment(const std::filesystem::path& path,
                                 const std::vector<std::string>& overrides,
                                 const ReadContext& read_context) {
  return load(
      [&](auto& options, auto& fallback, auto& problems) {
        return read_experiment(path, overrides, read_context, options, fallback, problems);
      },
      Source::kUser);
}

std::vector<config::Problem> pattern_problems(const LoadedExperiment& experiment,
                                              const TensorLister& tensors) {
  std::vector<config::Problem> problems;
  if (!names_tensors(experiment.options)) return problems;
  check_patterns(experiment.options, experiment.origins, tensors(experiment.options), problems,
                 tensors);
  return problems;
}

void require_patterns_match(const LoadedExperiment& experiment, const TensorLister& tensors) {
  config::throw_problems(pattern_problems(experiment, tensors));
}

LoadedExperiment load_stored_experiment(const std::string& toml, const std::string& where,
                                        const std::vector<std::string>& overrides) {
  return load(
      [&](auto& options, auto& fallback, auto& problems) -> ReadExperiment {
        return {.origins = config::load_text(
                    toml, where, std::filesystem::path(where).parent_path(), overrides,
                    experiment_schema(options), experiment_schema(fallback), problems),
                .taken = {}};
      },
      Source::kRun);
}

std::string stated_config_hash(const std::string& toml, const std::string& where) {
  auto stored = load_stored_experiment(toml, where, {});
  const auto is_stated = [&](const config::Key& key) { return stored.origins.given(key.path); };
  return hex64(config::fixed_hash(experiment_schema(stored.options), fixed_as_well(stored.options),
                                  is_stated));
}

std::vector<std::string> differences_from(const std::string& stored_toml, const std::string& where,
                                          const Experiment& now, bool extend) {
  auto stored = load_stored_experiment(stored_toml, where, {});
  Experiment now_options = now;
  auto also = fixed_as_well(now);
  if (extend) {
    std::erase(also, "train.max_steps");
    std::erase(also, "train.max_epochs");
  }
  return config::differences(experiment_schema(stored.options), experiment_schema(now_options),
                             also);
}

}  // namespace stretto::experiment
