#pragma once

#include <string>

#include "report/chart_scale.h"

namespace stretto::report {

/// What stands above a picture, and what is read of it to those who cannot see it.
struct Figure {
  std::string title, summary;
  std::string legend = {};  ///< markup between the two
};

/// A `<figure>` with an inline SVG of these units, which scales with its column.
std::string render_figure(const Figure& figure, double width, double height,
                          const std::string& svg);

/// The same without a picture, as nothing was measured yet.
std::string render_empty_figure(const Figure& figure);

/// The same with the axes of a chart.
/// @param plot   the curves, cut off where the axes end
/// @param above  what lies on top of them
std::string render_framed(const Figure& figure, const Scale& scale, const std::string& plot,
                          const std::string& above = "");

/// A coordinate: at most one decimal.
std::string svg_number(double value);

}  // namespace stretto::report
