#include "report/chart_scale.h"

#include <algorithm>
#include <cmath>

namespace stretto::report {
namespace {

constexpr int kMostXTicks = 6, kMostYTicks = 6, kMostLogTicks = 9;

/// A diverged run has losses of 1e300; no one reads them off a curve, and their ratios overflow.
bool is_drawable(double value, bool logarithmic) {
  const double size = std::abs(value);
  if (logarithmic && !(value > 0)) return false;
  return value == 0 || (size > 1e-100 && size < 1e100);
}

/// Means are taken of what the eye sees: of logarithms on a logarithmic axis.
std::vector<Point> smoothed(std::vector<Point> points, bool logarithmic) {
  const double window = std::max(1.0, static_cast<double>(points.size()) / 100);
  if (!logarithmic) return smooth(points, window);
  for (Point& point : points) point.y = std::log(point.y);
  points = smooth(points, window);
  for (Point& point : points) point.y = std::exp(point.y);
  return points;
}

/// All of the lines that are read, and of faint raw lines all but their outliers: one spike of the
/// gradient norm must not press the curve flat.
Range value_range(const Chart& chart, const std::vector<Curve>& curves) {
  Range range;
  for (const Curve& curve : curves) {
    const double band = std::max(1.0, curve.series->band);
    for (const Point& point : curve.line) {
      range.add(point.y / band);
      range.add(point.y * band);
    }
    if (curve.series->style != LineStyle::kRawAndSmooth) continue;
    std::vector<double> values;
    for (const Point& point : curve.raw) values.push_back(point.y);
    range.add(quantile(values, 0.01));
    range.add(quantile(values, 0.99));
  }
  if (chart.from_zero) range.add(0);
  return range;
}

std::vector<Tick> with_labels(const std::vector<double>& values) {
  const std::vector<std::string> labels = tick_labels(values);
  std::vector<Tick> ticks;
  for (size_t i = 0; i < values.size(); ++i) ticks.push_back({values[i], labels[i]});
  return ticks;
}

}  // namespace

std::vector<Curve> curves_of(const Chart& chart) {
  std::vector<Curve> curves;
  for (const Series& series : chart.series) {
    Curve curve{&series, {}, {}};
    for (const Point& point : series.points) {
      if (is_drawable(point.y, chart.logarithmic)) curve.raw.push_back(point);
    }
    if (curve.raw.empty()) continue;
    const bool is_smooth =
        series.style == LineStyle::kRawAndSmooth || series.style == LineStyle::kSmooth;
    curve.line = is_smooth ? smoothed(curve.raw, chart.logarithmic) : curve.raw;
    curves.push_back(std::move(curve));
  }
  return curves;
}

Scale::Scale(const Chart& chart, const std::vector<Curve>& curves)
    : logarithmic_(chart.logarithmic), width_(chart.wide ? kWideChartWidth : kChartWidth) {
  x_ = {0, std::max(chart.last_step, 0.0)};
  for (const Curve& curve : curves) {
    x_.add(curve.raw.front().x);
    x_.add(curve.raw.back().x);
  }
  if (x_.low == x_.high) x_.high = x_.low + 1;
  std::vector<double> steps = nice_ticks(x_.low, x_.high, kMostXTicks);
  if (chart.x_unit.empty()) {  // no step 1.5
    std::erase_if(steps, [](double step) { return step != std::floor(step); });
  }
  x_ticks_ = with_labels(steps);

  y_ = value_range(chart, curves);
  widen(chart.from_zero);
  const int most = logarithmic_ ? kMostLogTicks : kMostYTicks;
  const std::vector<double> values = axis_ticks(y_.low, y_.high, most, logarithmic_);
  y_.low = std::min(y_.low, values.front());
  y_ticks_ = with_labels(values);
  size_t longest = 3;
  for (const Tick& tick : y_ticks_) longest = std::max(longest, tick.label.size());
  left_ = 12 + kTickCharacterWidth * static_cast<double>(longest);
}

double Scale::x(double value) const {
  return left_ + (value - x_.low) / (x_.high - x_.low) * (width_ - kChartRight - left_);
}

double Scale::y(double value) const {
  // A clipped point must not become a coordinate of a billion.
  const double share = (mapped(value) - mapped(y_.low)) / (mapped(y_.high) - mapped(y_.low));
  const double height = kChartHeight - kChartBottom - kChartTop;
  return kChartHeight - kChartBottom - std::clamp(share, -0.5, 1.5) * height;
}

double Scale::mapped(double value) const {
  return logarithmic_ ? std::log(value) : value;
}

/// A little air above and below, but none below zero for what is never negative; a flat curve gets
/// a range of its own.
void Scale::widen(bool from_zero) {
  if (logarithmic_) {
    const double air = y_.high > y_.low ? std::pow(y_.high / y_.low, 0.05) : 1.2;
    y_ = {y_.low / air, y_.high * air};
    return;
  }
  double air = 0.05 * (y_.high - y_.low);
  if (air == 0) air = y_.high == 0 ? 1 : 0.1 * std::abs(y_.high);
  const double below = y_.low >= 0 ? std::max(0.0, y_.low - air) : y_.low - air;
  y_ = {from_zero && y_.low == 0 ? 0 : below, y_.high + air};
}

}  // namespace stretto::report
