#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/foreign_paths.h"
#include "experiment/family_spec.h"
#include "experiment/load_experiment.h"

namespace stretto::cli {

/// Whose data a command reads. `eval` and `infer` may get files of another form than the run's, and
/// so take the keys that say how files are read (config::Change::kReading). `bench` and calibration
/// may get other files in the place of the run's own: all keys of `[data]`.
enum class Reads : uint8_t { kOwnData, kAnyData, kOtherData };

/// What each family says of a command, such as &experiment::FamilySpec::infer.
using FamilyCommandMember = experiment::FamilyCommand experiment::FamilySpec::*;

/// The experiment of a run folder, from its config.toml, with overrides of keys that do not shape
/// what was trained: decode.*, eval.*, data.test_*, run.threads and others that are free to change.
///
/// Files that the stored configuration names outside of the folder are left out, unless this user
/// trained with it (cli/foreign_paths.h).
///
/// Throws Error(kUsage) when the folder is no run, and for an override of a fixed key;
/// Error(kBadData) when config.toml is not the run's (experiment/run_config.h).
/// @param command  whose FamilyCommand::batch_keys are named where a bound of training is
/// overridden; null = none has any
experiment::LoadedExperiment load_run_config(const std::filesystem::path& run_directory,
                                             const std::vector<std::string>& overrides,
                                             Reads reads = Reads::kOwnData,
                                             FamilyCommandMember command = nullptr);
/// The same, with what was left out.
experiment::LoadedExperiment load_run_config(const std::filesystem::path& run_directory,
                                             const std::vector<std::string>& overrides, Reads reads,
                                             KeepPaths keep, std::vector<ForeignPath>& left_out,
                                             FamilyCommandMember command = nullptr);

/// Throws Error(kUsage) when `run_directory` is no run folder; of a model folder of `transformers`
/// it advises how one is imported.
void require_run(const std::filesystem::path& run_directory);

}  // namespace stretto::cli
