#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "report/chart_math.h"

namespace stretto::report {

/// One of many lines in a picture. They are given from the best to the last: the best has a colour
/// of its own, the others are fainter towards the last.
struct RankedLine {
  std::string title;  ///< what the browser shows where the reader points at the line
  std::vector<Point> points;
};

/// Curves over steps, with the axes of render_chart().
struct RankedCurves {
  std::string title, summary;
  std::vector<RankedLine> lines;  ///< x is the step; a line without a point is left out
  double last_step = 0;           ///< the axis reaches to here, or to the last point
};

/// A `<figure>` as render_chart() makes it, but with a dot at the end of each curve.
std::string render_ranked_curves(const RankedCurves& curves);

/// An axis of parallel coordinates: texts beside it, and where they stand, 0 the foot and 1 the
/// head.
struct ParallelAxis {
  std::string title;
  std::vector<std::pair<double, std::string>> names;
};

/// Lines through axes that stand side by side, and at the end through one for their rank.
struct ParallelCoordinates {
  std::string title, summary;
  std::vector<ParallelAxis> axes;
  /// A point's x is the number of an axis, from 0, and its y stands there as names do. A line may
  /// lack axes.
  std::vector<RankedLine> lines;
};

/// A wide `<figure>` with an inline SVG.
std::string render_parallel_coordinates(const ParallelCoordinates& picture);

/// Rules of these pictures, for PageHead::style.
extern const char* const kRankedLinesStyle;

}  // namespace stretto::report
