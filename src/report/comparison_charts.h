#pragma once

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/comparison.h"

namespace stretto::report {

/// The charts of a comparison over one measure of progress.
struct ComparedCharts {
  std::string over;  ///< "updates", "tokens", "time"
  std::vector<Chart> charts;
  /// For each chart and each of its series the run that it belongs to, an index of
  /// Comparison::runs.
  std::vector<std::vector<size_t>> runs;
};

/// What at least two runs have: each number in training and in validation, throughput, learning
/// rate and gradient norm. First over updates. Then over what throughput counts, once for each
/// unit, as far as events tell the size of updates: between two events the mean of their sizes.
/// Then over the time of training.
///
/// A run without a measure has no line in its chart. For a single run everything is drawn, and
/// nothing without has_curves().
std::vector<ComparedCharts> compared_charts(const Comparison& comparison,
                                            const std::vector<Curves>& curves);

/// The colour of a run, and the dashes of its lines: classes of comparison_page.
std::string class_of_run(size_t run);

}  // namespace stretto::report
