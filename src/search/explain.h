#pragma once

#include <string>

#include "search/search_state.h"

namespace stretto::search {

/// `stretto search explain DIR`: for each bracket and rung the trials that compete there, the best
/// first, with the cut-off between them, and what became of each.
std::string explain(const SearchState& state);

}  // namespace stretto::search
