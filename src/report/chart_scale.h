#pragma once

#include <limits>
#include <string>
#include <vector>

#include "report/chart.h"

namespace stretto::report {

/// Units of the viewBox of a chart. Wide enough for two columns on a desktop, small enough that the
/// labels can still be read on a telephone.
constexpr double kChartWidth = 460, kChartHeight = 236;
constexpr double kWideChartWidth = 2 * kChartWidth;  ///< Chart::wide
constexpr double kChartTop = 10, kChartBottom = 26, kChartRight = 12;
constexpr double kTickCharacterWidth = 6.4;  ///< of the 11-unit tick labels

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
};

/// A series as it is drawn.
struct Curve {
  const Series* series;
  std::vector<Point> raw, line;  ///< `line` is the one that is read: smoothed if the style says so
};

/// What of a chart can be drawn; curves without a point are left out.
std::vector<Curve> curves_of(const Chart& chart);

struct Tick {
  double value;
  std::string label;
};

/// From data to the plane of the picture. Steps count from 0, so that the charts of a run stand
/// over one another; the value axis has a label at its foot.
class Scale {
 public:
  /// @param curves  at least one
  Scale(const Chart& chart, const std::vector<Curve>& curves);

  double x(double value) const;
  double y(double value) const;
  double left() const { return left_; }    ///< of the plot, after the labels
  double width() const { return width_; }  ///< of the picture
  const Range& x_range() const { return x_; }
  const std::vector<Tick>& x_ticks() const { return x_ticks_; }
  const std::vector<Tick>& y_ticks() const { return y_ticks_; }

 private:
  double mapped(double value) const;
  void widen(bool from_zero);

  bool logarithmic_;
  double width_;
  Range x_, y_;
  std::vector<Tick> x_ticks_, y_ticks_;
  double left_ = 0;
};

}  // namespace stretto::report
