#include "search/trial_folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/data_record.h"
#include "experiment/run_config.h"
#include "experiment/same_experiment.h"
#include "store/checkpoint.h"
#include "store/run_record.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Throws Error(kBadData), or Error(kUsage) for what is no configuration.
void require_whole_run(const fs::path& directory) {
  const auto record = store::read_run_record(directory);
  store::CheckpointStore checkpoints(directory);
  const auto newest = checkpoints.load_newest(/*quarantine=*/false);
  if (!record) {
    if (!newest) return;
    throw Error(ExitCode::kBadData, (directory / "run.json").string() + ": is missing", "");
  }
  experiment::read_run_config(directory);
  if (!newest) return;
  if (newest->run_id != record->run_id) {
    throw Error(ExitCode::kBadData, newest->directory.string() + ": is of another run", "");
  }
  for (const auto& [name, hash] : newest->provenance.tokenizer) {
    const fs::path file = directory / "tokenizer" / name;
    if (!is_there(file) || sha256_hex(read_file(file)) != hash) {
      throw Error(ExitCode::kBadData, file.string() + ": is not that of the checkpoint", "");
    }
  }
  const auto data = data::read_data_record(directory, record->run_id);
  if (!data && record->has_data_record) {
    const fs::path file = directory / data::kDataRecordFile;
    throw Error(ExitCode::kBadData, file.string() + ": is missing", "");
  }
}

}  // namespace

bool holds_checkpoints(const fs::path& run_directory) {
  std::error_code error;
  const bool is_empty = fs::is_empty(run_directory / "checkpoints", error);
  return !error && !is_empty;
}

void require_own_run(const fs::path& run_directory, const experiment::LoadedExperiment& trial) {
  try {
    experiment::require_same_experiment(run_directory, trial, /*extend=*/false);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) return;  // damage: see damage_of_run()
    throw Error(ExitCode::kUsage, error.what(),
                "it is not the run of this trial: move the folder away, and the same command "
                "trains the trial from its start");
  }
}

std::string damage_of_run(const fs::path& run_directory) {
  if (!holds_checkpoints(run_directory) && !is_there(run_directory / "run.json")) return "";
  try {
    require_whole_run(run_directory);
    return "";
  } catch (const store::NewerFormat&) {
    return "";
  } catch (const Error& error) {
    if (error.code() == ExitCode::kIo) throw;
    return error.what();
  }
}

// Checkpoints first and config.toml last: one that is killed in between leaves nothing that
// training takes for another run's.
void forget_run(const fs::path& run_directory) {
  for (const char* name : {"checkpoints", "tokenizer", "tensorboard", "report.html", "report.json",
                           "metrics.jsonl", "data.json", "run.json", "config.toml"}) {
    std::error_code error;
    fs::remove_all(run_directory / name, error);
    if (error) throw_io_error("cannot remove", run_directory / name, error.value());
  }
}

}  // namespace stretto::search
