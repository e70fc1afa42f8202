#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "report/chart_frame.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

constexpr size_t kMaxPoints = 600;
constexpr int kHoverStrips = 60;

std::string value_text(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) return tick_label(value);
  if (size >= 1000) return with_thousands(std::llround(value));
  return fixed(value, size < 1 ? 4 : size < 100 ? 3 : 1);
}

std::string at(const Point& point, const Scale& scale) {
  return svg_number(scale.x(point.x)) + " " + svg_number(scale.y(point.y));
}

std::string path_of(const std::vector<Point>& points, const Scale& scale, const std::string& css,
                    LineStyle style = LineStyle::kLine) {
  std::string d;
  for (const Point& point : points) {
    if (!d.empty() && style == LineStyle::kSteps) {
      d += "H" + svg_number(scale.x(point.x)) + "V" + svg_number(scale.y(point.y));
    } else {
      d += (d.empty() ? "M" : "L") + at(point, scale);
    }
  }
  return "<path class=\"" + css + "\" d=\"" + d + "\"/>";
}

/// The area from y / band to y * band: along the top, and back along the bottom.
std::string band_of(const std::vector<Point>& line, const Scale& scale, const Series& series) {
  std::string d;
  for (const Point& point : line)
    d += (d.empty() ? "M" : "L") + at({point.x, point.y * series.band}, scale);
  for (size_t i = line.size(); i-- > 0;) d += "L" + at({line[i].x, line[i].y / series.band}, scale);
  return "<path class=\"band " + series.css + "\" d=\"" + d + "Z\"/>";
}

std::string render_curve(const Curve& curve, const Scale& scale) {
  const Series& series = *curve.series;
  const std::string& css = series.css;
  std::string out;
  const std::vector<Point> line = downsample(curve.line, kMaxPoints);
  if (series.band > 1 && line.size() > 1) out += band_of(line, scale, series);
  const bool with_raw = series.style == LineStyle::kRawAndSmooth;
  if (with_raw) out += path_of(downsample(curve.raw, kMaxPoints), scale, "raw " + css);
  out += path_of(line, scale, "line " + css, series.style);
  const bool few = line.size() <= (series.style == LineStyle::kDots ? 60u : 1u);
  if (few) {
    for (const Point& point : line) {
      out += "<circle class=\"dot " + css + "\" cx=\"" + svg_number(scale.x(point.x)) + "\" cy=\"" +
             svg_number(scale.y(point.y)) + "\" r=\"2.6\"/>";
    }
  }
  return out;
}

/// The point of a curve nearest to x, if the curve has one near enough to speak of.
std::optional<Point> point_near(const std::vector<Point>& points, double x, double reach) {
  auto after = std::lower_bound(points.begin(), points.end(), x,
                                [](const Point& point, double value) { return point.x < value; });
  if (after == points.end()) --after;
  if (after != points.begin() && std::abs((after - 1)->x - x) < std::abs(after->x - x)) --after;
  if (std::abs(after->x - x) > reach) return std::nullopt;
  return *after;
}

/// "step 1,200", "12.4 minutes"
std::string place_text(const Chart& chart, double x) {
  if (chart.x_unit.empty()) return "step " + with_thousands(std::llround(x));
  return (x < 1000 ? fixed(x, 1) : with_thousands(std::llround(x))) + " " + chart.x_unit;
}

/// Invisible strips over the plot. With the pointer on one, style sheet rules show its line and
/// dots, and the browser its title.
std::string render_hover(const Chart& chart, const std::vector<Curve>& curves, const Scale& scale) {
  const Range x = scale.x_range();
  const double width = (x.high - x.low) / kHoverStrips;
  std::string out;
  for (int strip = 0; strip < kHoverStrips; ++strip) {
    const double middle = x.low + (strip + 0.5) * width;
    std::string title, dots;
    double step = middle;
    for (const Curve& curve : curves) {
      const bool sparse = curve.series->style == LineStyle::kDots;
      const auto point = point_near(curve.line, middle, sparse ? width : 2 * width);
      if (!point) continue;
      if (title.empty()) step = point->x;
      title += "\n" + curve.series->name + " " + value_text(point->y);
      dots += "<circle class=\"dot " + curve.series->css + "\" cx=\"" +
              svg_number(scale.x(point->x)) + "\" cy=\"" + svg_number(scale.y(point->y)) +
              "\" r=\"3.4\"/>";
    }
    if (title.empty()) continue;
    const double left = scale.x(x.low + strip * width);
    const double right = scale.x(x.low + (strip + 1) * width);
    out += "<g class=\"hover\"><title>" + escape_html(place_text(chart, step) + title) +
           "</title><rect x=\"" + svg_number(left) + "\" y=\"" + svg_number(kChartTop) +
           "\" width=\"" + svg_number(right - left) + "\" height=\"" +
           svg_number(kChartHeight - kChartTop - kChartBottom) + "\"/><path d=\"M" +
           svg_number(scale.x(step)) + " " + svg_number(kChartTop) + "V" +
           svg_number(kChartHeight - kChartBottom) + "\"/>" + dots + "</g>";
  }
  return out;
}

std::string legend_of(const Chart& chart) {
  if (!chart.legend || chart.series.size() < 2) return "";
  std::string legend;
  for (const Series& series : chart.series) {
    if (series.points.empty()) continue;
    legend += "<span class=\"key\"><i class=\"" + series.css + "\"></i>" +
              escape_html(series.name) + "</span>";
  }
  return legend;
}

}  // namespace

std::string render_chart(const Chart& chart) {
  const std::vector<Curve> curves = curves_of(chart);
  const Figure figure{chart.title, chart.summary, legend_of(chart)};
  if (curves.empty()) return render_empty_figure(figure);
  const Scale scale(chart, curves);
  std::string plot;
  for (const Curve& curve : curves) plot += render_curve(curve, scale);
  return render_framed(figure, scale, plot, render_hover(chart, curves, scale));
}

}  // namespace stretto::report
