#pragma once

#include <string>
#include <vector>

#include "search/search_plan.h"

namespace stretto::search {

/// What forbids that a search which began as `stored` goes on as `now`, a sentence each; empty =
/// nothing does.
///
/// May change: the number of trials and of hours upwards, points behind those that there were, the
/// space to a part of itself, slots, restarts, and what of the configuration shapes neither a trial
/// nor its score.
std::vector<std::string> forbidden_changes(const SearchPlan& stored, const SearchPlan& now);

/// Throws Error(kUsage) when the configuration on the disk has such a change: each training reads
/// the file, and so would those that come later read another one.
void require_same_recipe(const SearchPlan& stored);

/// Throws Error(kUsage) with all of forbidden_changes().
void require_may_go_on(const std::string& directory, const SearchPlan& stored,
                       const SearchPlan& now);

}  // namespace stretto::search
