#pragma once

#include <cstddef>
#include <vector>

#include "config/problem.h"
#include "search/search_options.h"
#include "search/space.h"

namespace stretto::search {

/// Whose space it is: one that goes on may have become narrower since it was begun, so that values
/// in conditions, and points that were tried, are no longer in it.
struct SpaceUse {
  bool begins = true;
  size_t used_points = 0;  ///< of `search.points`, where it goes on
};

/// The hyperparameters of the blocks `[[space]]`; what is wrong with them goes to `problems`: a
/// space without points, a key twice, bounds that are missing or exchanged, conditions that name
/// nothing, no number of points where a grid needs one. A rule is left out when one of its keys has
/// a problem already.
Space build_space(const SearchFileOptions& options, const config::Origins& origins,
                  const SpaceUse& use, std::vector<config::Problem>& problems);

/// The points of `search.points`, with what is wrong with them.
std::vector<Point> build_points(const SearchOptions& options, const Space& space,
                                const config::Origins& origins, const SpaceUse& use,
                                std::vector<config::Problem>& problems);

}  // namespace stretto::search
