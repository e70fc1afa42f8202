#pragma once

#include <filesystem>
#include <vector>

#include "config/problem.h"
#include "sweep/grid_options.h"

namespace stretto::sweep {

/// Reads a grid file. Throws Error(kUsage) with all that is wrong with it: keys, bits and shares
/// that there are not, and a grid that asks for nothing.
GridOptions load_grid(const std::filesystem::path& path);

/// What is wrong with a grid file where a configuration is expected: one problem, with the command
/// that takes such a file. Empty for any other file, and for one that is no TOML.
std::vector<config::Problem> problems_as_configuration(const std::filesystem::path& path);

}  // namespace stretto::sweep
