#pragma once

#include <filesystem>
#include <vector>

#include "experiment/load_experiment.h"

/// Files that decoding reads beside the model, such as a list of words or a language model: keys
/// that name a file and shape scores (config::Change::kScoring). One that lies in the run folder
/// itself travels with it.
namespace stretto::experiment {

/// Where the stored configuration names such a file, and one of its name lies in the folder, that
/// one is meant, wherever the folder was when its configuration was written. What was given on the
/// command line stays.
void take_files_of_folder(LoadedExperiment& loaded, const std::filesystem::path& run_directory);

/// Those that this configuration names in the folder: a copy of the run needs them.
std::vector<std::filesystem::path> files_of_folder(const Experiment& experiment,
                                                   const std::filesystem::path& run_directory);

}  // namespace stretto::experiment
