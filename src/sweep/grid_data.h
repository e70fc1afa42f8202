#pragma once

#include <string>
#include <vector>

#include "sweep/grid_options.h"
#include "sweep/swept_point.h"

/// Other data than those of the runs: an imported model has none.
namespace stretto::sweep {

/// The words by which `stretto eval` takes `grid.data`: {"--data", "dev.tsv"}. None where it is
/// empty. Throws Error(kUsage) for another number of files than the run's family takes, and for one
/// that is missing.
std::vector<std::string> eval_data_words(const GridOptions& grid, const SweptRun& run);

/// The keys by which `stretto bench` takes them: {"data.valid=dev.tsv"}, and the same as data for
/// training of a run that has none. Throws the same.
std::vector<std::string> bench_data_words(const GridOptions& grid, const SweptRun& run);

}  // namespace stretto::sweep
