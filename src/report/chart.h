#pragma once

#include <string>
#include <vector>

#include "report/chart_math.h"

namespace stretto::report {

enum class LineStyle {
  kRawAndSmooth,  ///< a faint line through all points and a strong, smoothed one
  kSmooth,        ///< the smoothed one alone: for many curves
  kLine,
  kDots,   ///< a line with a dot at each point: for few points
  kSteps,  ///< a value holds until the next point
};

/// One curve. Points whose y is not finite (or not positive on a logarithmic axis) are left out.
struct Series {
  std::string name;          ///< legend and tooltip
  std::string css = "ink1";  ///< colour class of page_style.h: ink1, ink2, …; and others behind it
  LineStyle style = LineStyle::kLine;
  std::vector<Point> points;  ///< x ascending
  double band = 0;            ///< > 1: the area from y / band to y * band of the line is shaded
};

struct Chart {
  std::string title;
  std::string summary;  ///< the value that people ask for, right of the title
  bool logarithmic = false;
  bool from_zero = false;  ///< the y axis starts at zero
  bool wide = false;       ///< as wide as two columns
  std::vector<Series> series;
  double last_step = 0;  ///< the x axis reaches from 0 to here, or to the last point
  /// What x counts: "tokens", "minutes". Empty = steps, which are whole numbers.
  std::string x_unit = {};
  bool legend = true;  ///< false: the page names the curves elsewhere
};

/// A `<figure>` with an inline SVG of fixed proportions that scales with its column. Each curve has
/// at most 600 points. Moving over it shows a line, dots and a `<title>` with step and values: no
/// script.
std::string render_chart(const Chart& chart);

}  // namespace stretto::report
