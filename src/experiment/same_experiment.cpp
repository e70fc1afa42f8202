#include "experiment/same_experiment.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace stretto::experiment {

namespace fs = std::filesystem;

namespace {

bool has_learned(const fs::path& run_directory) {
  std::error_code error;
  if (fs::exists(run_directory / "tokenizer", error)) return true;
  for (const auto& entry : fs::directory_iterator(run_directory / "checkpoints", error)) {
    if (entry.path().filename().string().starts_with("step_")) return true;
  }
  return false;
}

}  // namespace

void require_same_experiment(const fs::path& run_directory, const LoadedExperiment& now,
                             bool extend) {
  const fs::path path = run_directory / "config.toml";
  std::error_code error;
  if (!fs::exists(path, error) || !has_learned(run_directory)) return;
  const auto lines = differences_from(read_file(path), path.string(), now.options, extend);
  if (lines.empty()) return;
  std::string advice = "train into another folder with --run, or give the old values";
  const bool only_length = lines.size() == 1 && lines.front().starts_with("train.max_steps:");
  if (only_length) {
    advice =
        "the schedule ends at train.max_steps, so another value changes every update; --extend "
        "goes on all the same, set schedule.total_steps to keep the curve";
  }
  throw Error(
      ExitCode::kUsage,
      run_directory.string() + " holds a run of another configuration:\n  " + join(lines, "\n  "),
      advice);
}

}  // namespace stretto::experiment
