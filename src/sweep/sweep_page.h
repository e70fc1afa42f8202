#pragma once

#include <span>
#include <string>
#include <vector>

#include "sweep/swept_point.h"

namespace stretto::sweep {

/// What a table and a page show.
struct SweepView {
  std::span<const PointResult> results;
  KnownScore metric;
  size_t num_points = 0;  ///< of the grid; more than there are results while some are missing
  std::vector<std::string> failed = {};  ///< names of points that came to nothing
  bool has_ended = false;                ///< nobody works on it any more
};

/// A table for people: a line for each point, with a mark for those on a Pareto front.
std::string sweep_table(const SweepView& view);
/// The same with tabs between columns, and numbers as programs read them.
std::string sweep_tsv(const SweepView& view);
/// One self-contained page: the score against megabytes and against time, a curve for each run
/// and share of zeros, the Pareto front over all of them, and the table.
std::string render_sweep(const SweepView& view);

}  // namespace stretto::sweep
