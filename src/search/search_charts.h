#pragma once

#include <string>

#include "search/search_html.h"

namespace stretto::search {

/// A `<figure>` with a curve for each trial, the best in a colour of its own.
std::string render_trial_curves(const SearchState& state, const TrialCurves& curves);

/// A `<figure>` with an axis for each hyperparameter and one for the place among all trials; each
/// trial with a result is a line through its values. A trial that lacks a hyperparameter passes
/// that axis without a value.
std::string render_parallel_coordinates(const SearchState& state);

}  // namespace stretto::search
