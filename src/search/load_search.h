#pragma once

#include <filesystem>
#include <vector>

#include "config/load.h"
#include "search/build_space.h"
#include "search/hosts.h"
#include "search/search_plan.h"

namespace stretto::search {

/// A search file that is sound, with its configuration.
struct LoadedSearch {
  SearchPlan plan;
  config::Origins origins;
  std::vector<Host> hosts;  ///< of `search.hosts`; empty = this machine alone
};

/// Reads a search file and the configuration that it names, and checks everything that can be
/// checked before a trial trains: keys and values of the space against the configuration's, points
/// against the space, that some point makes a sound configuration. Throws Error(kUsage) with all
/// problems; of a configuration of one run with that of problems_as_search_file() alone.
LoadedSearch load_search(const std::filesystem::path& path, const SpaceUse& use = {});

}  // namespace stretto::search
