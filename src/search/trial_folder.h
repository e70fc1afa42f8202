#pragma once

#include <filesystem>
#include <string>

#include "experiment/load_experiment.h"

namespace stretto::search {

/// Whether a trial's run folder has checkpoints, of whatever kind: its training goes on from one.
bool holds_checkpoints(const std::filesystem::path& run_directory);

/// Throws Error(kUsage) when the folder holds a run of another configuration than that of the
/// trial. Its training would refuse it too, and the trial would count as the worst.
void require_own_run(const std::filesystem::path& run_directory,
                     const experiment::LoadedExperiment& trial);

/// What is damaged in a run folder so that training cannot go on in it, in words: run.json,
/// config.toml, all of its checkpoints, a tokenizer that is not that of the checkpoint, or
/// data.json beside a checkpoint. Empty = nothing, or only a checkpoint of a later release is
/// there. Throws Error(kIo).
std::string damage_of_run(const std::filesystem::path& run_directory);

/// Removes what training wrote there, but for its logs: it then begins anew.
/// Throws Error(kIo).
void forget_run(const std::filesystem::path& run_directory);

}  // namespace stretto::search
