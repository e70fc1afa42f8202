#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/load_experiment.h"

namespace stretto::cli {

/// What is wrong with a file of another command, such as a search file, where a configuration is
/// expected: one problem, with that command. Empty for any other file, and for one that is no TOML.
std::vector<config::Problem> problems_as_configuration(const std::filesystem::path& path);

/// experiment::load_experiment(). When that throws, and the file is one of another command, the
/// Error(kUsage) has the problem of problems_as_configuration() alone. A sound file is read once.
/// Model folders of `transformers` are read too. @param run_directory  as experiment::ReadContext
/// has it
experiment::LoadedExperiment load_configuration(const std::filesystem::path& path,
                                                const std::vector<std::string>& overrides,
                                                const std::filesystem::path& run_directory = {});

}  // namespace stretto::cli
