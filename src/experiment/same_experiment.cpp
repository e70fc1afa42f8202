#include "experiment/same_experiment.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "experiment/run_config.h"
#include "report/metrics_log.h"
#include "store/run_record.h"

namespace stretto::experiment {

namespace fs = std::filesystem;

namespace {

bool has_checkpoint(const fs::path& run_directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_directory / "checkpoints", error)) {
    // What a killed process left half written or half removed begins with a dot.
    if (!entry.path().filename().string().starts_with(".")) return true;
  }
  return error && error != std::errc::no_such_file_or_directory;  // what cannot be seen is spared
}

bool has_recorded_update(const fs::path& run_directory) {
  const fs::path path = run_directory / "metrics.jsonl";
  std::error_code error;
  if (!fs::exists(path, error)) return static_cast<bool>(error);
  try {
    const auto events = report::read_metrics(path);
    return std::any_of(events.begin(), events.end(), [](const auto& e) { return e.step > 0; });
  } catch (const Error&) {
    return true;  // damaged: who knows what it held
  }
}

// The text that a tokenizer is trained on is read as [data] says, and drawn from by the seed; a
// run that begins with another one's weights takes its tokenizer.
bool shapes_tokenizer(const std::string& key) {
  return key.starts_with("tokenizer.") || key.starts_with("data.") || key == "run.seed" ||
         key.starts_with("train.init_");
}

// A configuration that is refused now (by a rule of today, say) is certainly another one.
RunState state_of_untrained(const fs::path& config, const LoadedExperiment& now) {
  try {
    RunState run_state{.begins = true};
    const auto stored = store::unseal_config(read_file(config, kMaxSmallTextBytes));
    for (const auto& line : differences_from(stored.toml, config.string(), now.options, false)) {
      run_state.anew = true;
      if (shapes_tokenizer(line.substr(0, line.find(':')))) run_state.keeps_tokenizer = false;
    }
    return run_state;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    return {.anew = true, .keeps_tokenizer = false, .begins = true};
  }
}

// Of a run that lost its config.toml: nothing else tells a checkpoint of another model from its
// own.
void require_known_hash(const fs::path& config, const LoadedExperiment& now) {
  const auto record = store::read_run_record(config.parent_path());
  if (!record) return;
  const auto& hashes = record->config_hashes;
  if (std::find(hashes.begin(), hashes.end(), now.config_hash) != hashes.end()) return;
  throw Error(
      ExitCode::kBadData,
      config.string() +
          ": is missing, and the hash of the configuration that is given is not in run.json",
      "put the file back from a copy of the run folder, or train into another folder with "
      "--run");
}

}  // namespace

RunState require_same_experiment(const fs::path& run_directory, const LoadedExperiment& now,
                                 bool extend) {
  const fs::path path = run_directory / "config.toml";
  std::error_code error;
  const bool is_stored = fs::exists(path, error);
  if (!has_checkpoint(run_directory) && !has_recorded_update(run_directory)) {
    return is_stored ? state_of_untrained(path, now) : RunState{.begins = true};
  }
  if (!is_stored) {
    require_known_hash(path, now);
    return {};
  }
  const std::string stored = read_run_config(run_directory, extend ? Extend::kYes : Extend::kNo);
  const auto lines = differences_from(stored, path.string(), now.options, extend);
  if (lines.empty()) return {};
  std::string advice = "train into another folder with --run, or give the old values";
  const std::string key = lines.front().substr(0, lines.front().find(':'));
  if (lines.size() == 1 && (key == "train.max_steps" || key == "train.max_epochs")) {
    advice = (now.options.schedule.decays_to_an_end() ? "the schedule ends at "
                                                      : "the warm-up is a share of ") +
             key +
             ", so another value changes every update; --extend goes on all the same, set "
             "schedule.total_steps to keep the curve";
  }
  throw Error(
      ExitCode::kUsage,
      run_directory.string() + " holds a run of another configuration:\n  " + join(lines, "\n  "),
      advice);
}

}  // namespace stretto::experiment
