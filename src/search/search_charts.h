#pragma once

#include <string>

#include "search/search_html.h"

namespace stretto::search {

/// A `<figure>` with a curve for each trial that has a result.
std::string render_trial_curves(const SearchState& state, const TrialCurves& curves);

/// A `<figure>` with an axis for each hyperparameter; each trial with a result is a line through
/// its values. A trial that lacks a hyperparameter passes that axis without a value.
std::string render_points(const SearchState& state);

}  // namespace stretto::search
