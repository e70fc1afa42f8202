#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/chart_math.h"
#include "search/search_state.h"

namespace stretto::search {

/// The metric of each trial at its validations; x is the step.
using TrialCurves = std::map<TrialId, std::vector<report::Point>>;

/// All that search.html shows.
struct SearchPage {
  const SearchState& state;
  TrialCurves curves;
  std::string title;
  std::string status;       ///< "running", "finished", "stopped"
  int refresh_seconds = 0;  ///< > 0 while the search runs: the page reloads itself
};

/// One self-contained page, as report.html is: no script, no network, light and dark, all data
/// escaped. Curves of all trials, parallel coordinates, which key mattered, rungs, trials.
std::string render_search_html(const SearchPage& page);

}  // namespace stretto::search
