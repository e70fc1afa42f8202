#pragma once

#include <filesystem>

#include "sweep/grid_options.h"

namespace stretto::sweep {

/// Reads a grid file. Throws Error(kUsage) with all that is wrong with it: keys, bits and shares
/// that there are not, and a grid that asks for nothing.
GridOptions load_grid(const std::filesystem::path& path);

}  // namespace stretto::sweep
