#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "report/chart_scale.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

constexpr size_t kMaxPoints = 600;
constexpr int kHoverStrips = 60;

std::string number(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string value_text(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) return tick_label(value);
  if (size >= 1000) return with_thousands(std::llround(value));
  return fixed(value, size < 1 ? 4 : size < 100 ? 3 : 1);
}

std::string render_axes(const Scale& scale) {
  std::string out;
  for (const Tick& tick : scale.y_ticks()) {
    const std::string y = number(scale.y(tick.value));
    out += "<path class=\"grid\" d=\"M" + number(scale.left()) + " " + y + "H" +
           number(kChartWidth - kChartRight) + "\"/><text class=\"tick\" text-anchor=\"end\" x=\"" +
           number(scale.left() - 7) + "\" y=\"" + y + "\" dy=\".34em\">" + tick.label + "</text>";
  }
  for (const Tick& tick : scale.x_ticks()) {
    const double x = scale.x(tick.value);
    const double half = kTickCharacterWidth / 2 * static_cast<double>(tick.label.size());
    // A label that would stand out of the picture is moved in.
    const double label_x = std::min(x, kChartWidth - half - 1);
    out += "<path class=\"axis\" d=\"M" + number(x) + " " + number(kChartHeight - kChartBottom) +
           "v4\"/><text class=\"tick\" text-anchor=\"middle\" x=\"" + number(label_x) + "\" y=\"" +
           number(kChartHeight - 7) + "\">" + tick.label + "</text>";
  }
  return out + "<path class=\"axis\" d=\"M" + number(scale.left()) + " " +
         number(kChartHeight - kChartBottom) + "H" + number(kChartWidth - kChartRight) + "\"/>";
}

std::string at(const Point& point, const Scale& scale) {
  return number(scale.x(point.x)) + " " + number(scale.y(point.y));
}

std::string path_of(const std::vector<Point>& points, const Scale& scale, const std::string& css,
                    LineStyle style = LineStyle::kLine) {
  std::string d;
  for (const Point& point : points) {
    if (!d.empty() && style == LineStyle::kSteps) {
      d += "H" + number(scale.x(point.x)) + "V" + number(scale.y(point.y));
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
      out += "<circle class=\"dot " + css + "\" cx=\"" + number(scale.x(point.x)) + "\" cy=\"" +
             number(scale.y(point.y)) + "\" r=\"2.6\"/>";
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
      dots += "<circle class=\"dot " + curve.series->css + "\" cx=\"" + number(scale.x(point->x)) +
              "\" cy=\"" + number(scale.y(point->y)) + "\" r=\"3.4\"/>";
    }
    if (title.empty()) continue;
    const double left = scale.x(x.low + strip * width);
    const double right = scale.x(x.low + (strip + 1) * width);
    out += "<g class=\"hover\"><title>" + escape_html(place_text(chart, step) + title) +
           "</title><rect x=\"" + number(left) + "\" y=\"" + number(kChartTop) + "\" width=\"" +
           number(right - left) + "\" height=\"" + number(kChartHeight - kChartTop - kChartBottom) +
           "\"/><path d=\"M" + number(scale.x(step)) + " " + number(kChartTop) + "V" +
           number(kChartHeight - kChartBottom) + "\"/>" + dots + "</g>";
  }
  return out;
}

std::string render_heading(const Chart& chart) {
  std::string legend;
  if (chart.legend && chart.series.size() > 1) {
    for (const Series& series : chart.series) {
      if (series.points.empty()) continue;
      legend += "<span class=\"key\"><i class=\"" + series.css + "\"></i>" +
                escape_html(series.name) + "</span>";
    }
  }
  return "<figcaption><h3>" + escape_html(chart.title) + "</h3>" + legend + "<b>" +
         escape_html(chart.summary) + "</b></figcaption>";
}

}  // namespace

std::string render_chart(const Chart& chart) {
  const std::vector<Curve> curves = curves_of(chart);
  std::string out = "<figure class=\"card\">" + render_heading(chart);
  if (curves.empty()) return out + "<p class=\"none\">Nothing measured yet</p></figure>\n";
  const Scale scale(chart, curves);
  // A nested <svg> clips without needing an id that is unique on the page.
  std::string plot;
  for (const Curve& curve : curves) plot += render_curve(curve, scale);
  out += "<svg viewBox=\"0 0 " + number(kChartWidth) + " " + number(kChartHeight) +
         "\" role=\"img\" aria-label=\"" + escape_html(chart.title + ": " + chart.summary) + "\">" +
         render_axes(scale);
  const std::string x = number(scale.left() - 4), y = number(kChartTop - 4);
  const std::string width = number(kChartWidth - scale.left() + 4);
  const std::string height = number(kChartHeight - kChartBottom - kChartTop + 8);
  out += "<svg x=\"" + x + "\" y=\"" + y + "\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"" + x + " " + y + " " + width + " " + height + "\">" + plot + "</svg>";
  return out + render_hover(chart, curves, scale) + "</svg></figure>\n";
}

}  // namespace stretto::report
