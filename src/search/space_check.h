#pragma once

#include <string>
#include <vector>

#include "config/problem.h"
#include "search/search_plan.h"

namespace stretto::search {

/// Whether each key of the space is one of the configuration, and its values are of the key's type
/// and range: each is read as an override of the configuration would be, beside values that fulfil
/// its conditions. Messages are those of `stretto check`, at the places of the search file: what is
/// wrong with a value at `values`, `min` or `max`, what is wrong with the key at `key`.
void check_space(const SearchPlan& plan, const config::Origins& origins,
                 std::vector<config::Problem>& problems);

/// Throws Error(kUsage) when no point that was looked at makes a sound configuration.
void require_sound_point(const SearchPlan& plan);

/// The points of the plan's grid that a rule refuses, of the first SearchPlan::kMostLookedAt.
RefusedPoints refused_of_grid(const SearchPlan& plan);

/// The first line of what is wrong with the configuration of a point; empty = nothing is.
std::string refusal_of(const SearchPlan& plan, const Point& point);

}  // namespace stretto::search
