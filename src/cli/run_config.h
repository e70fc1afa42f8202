#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"

namespace stretto::cli {

/// The experiment of a run folder, from its config.toml, with overrides of keys that do not shape
/// what was trained: decode.*, eval.*, data.test_*, run.threads and others that are free to change.
///
/// Throws Error(kUsage) when the folder is no run, and for an override of a fixed key;
/// Error(kBadData) when config.toml is not the run's (experiment/run_config.h).
experiment::LoadedExperiment load_run_config(const std::filesystem::path& run_directory,
                                             const std::vector<std::string>& overrides);

/// Throws Error(kUsage) when `run_directory` is no run folder.
void require_run(const std::filesystem::path& run_directory);

}  // namespace stretto::cli
