#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

// Units of the viewBox. Wide enough for two columns on a desktop, small enough that the labels can
// still be read on a telephone.
constexpr double kWidth = 460, kHeight = 236;
constexpr double kTop = 10, kBottom = 26, kRight = 12;
constexpr double kCharacterWidth = 6.4;  // of the 11-unit tick labels
constexpr size_t kMaxPoints = 600;
constexpr int kHoverStrips = 60;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

struct Curve {
  const Series* series;
  std::vector<Point> raw, line;  ///< `line` is the one that is read: smoothed if the style says so
};

/// A diverged run has losses of 1e300; nobody reads them off a curve, and their ratios overflow.
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

std::vector<Curve> curves_of(const Chart& chart) {
  std::vector<Curve> curves;
  for (const Series& series : chart.series) {
    Curve curve{&series, {}, {}};
    for (const Point& point : series.points) {
      if (is_drawable(point.y, chart.logarithmic)) curve.raw.push_back(point);
    }
    if (curve.raw.empty()) continue;
    curve.line = series.style == LineStyle::kRawAndSmooth ? smoothed(curve.raw, chart.logarithmic)
                                                          : curve.raw;
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// All of the lines that are read, and of faint raw lines all but their outliers: one spike of the
/// gradient norm must not press the curve flat.
Range value_range(const Chart& chart, const std::vector<Curve>& curves) {
  Range range;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.line) range.add(point.y);
    if (curve.series->style != LineStyle::kRawAndSmooth) continue;
    std::vector<double> values;
    for (const Point& point : curve.raw) values.push_back(point.y);
    range.add(quantile(values, 0.01));
    range.add(quantile(values, 0.99));
  }
  if (chart.from_zero) range.add(0);
  return range;
}

/// From data to the plane of the picture.
class Scale {
 public:
  Scale(const Chart& chart, const std::vector<Curve>& curves) : logarithmic_(chart.logarithmic) {
    for (const Curve& curve : curves) {
      x_.add(curve.raw.front().x);
      x_.add(curve.raw.back().x);
    }
    y_ = value_range(chart, curves);
    if (x_.low == x_.high) x_ = {x_.low - 1, x_.high + 1};
    widen(chart.from_zero);
    ticks_ = logarithmic_ ? nice_log_ticks(y_.low, y_.high, 9) : nice_ticks(y_.low, y_.high, 6);
    size_t longest = 3;
    for (const double tick : ticks_) longest = std::max(longest, tick_label(tick).size());
    left_ = 12 + kCharacterWidth * static_cast<double>(longest);
  }

  double x(double value) const {
    return left_ + (value - x_.low) / (x_.high - x_.low) * (kWidth - kRight - left_);
  }
  double y(double value) const {
    // A clipped point must not become a coordinate of a billion.
    const double share = (mapped(value) - mapped(y_.low)) / (mapped(y_.high) - mapped(y_.low));
    return kHeight - kBottom - std::clamp(share, -0.5, 1.5) * (kHeight - kBottom - kTop);
  }
  double left() const { return left_; }
  const std::vector<double>& y_ticks() const { return ticks_; }
  std::vector<double> x_ticks() const {  // there is no step 1.5
    std::vector<double> ticks = nice_ticks(x_.low, x_.high, 6);
    std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });
    return ticks;
  }
  Range x_range() const { return x_; }

 private:
  double mapped(double value) const { return logarithmic_ ? std::log(value) : value; }

  /// A little air above and below; a flat curve gets a range of its own.
  void widen(bool from_zero) {
    if (logarithmic_) {
      const double air = y_.high > y_.low ? std::pow(y_.high / y_.low, 0.05) : 1.2;
      y_ = {y_.low / air, y_.high * air};
      return;
    }
    double air = 0.05 * (y_.high - y_.low);
    if (air == 0) air = y_.high == 0 ? 1 : 0.1 * std::abs(y_.high);
    y_ = {from_zero && y_.low == 0 ? 0 : y_.low - air, y_.high + air};
  }

  bool logarithmic_;
  Range x_, y_;
  std::vector<double> ticks_;
  double left_ = 0;
};

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
  for (const double tick : scale.y_ticks()) {
    const std::string y = number(scale.y(tick));
    out += "<path class=\"grid\" d=\"M" + number(scale.left()) + " " + y + "H" +
           number(kWidth - kRight) + "\"/><text class=\"tick\" text-anchor=\"end\" x=\"" +
           number(scale.left() - 7) + "\" y=\"" + y + "\" dy=\".34em\">" + tick_label(tick) +
           "</text>";
  }
  for (const double tick : scale.x_ticks()) {
    const double x = scale.x(tick);
    const double half = kCharacterWidth / 2 * static_cast<double>(tick_label(tick).size());
    // A label that would stand out of the picture is moved in.
    const double label_x = std::min(x, kWidth - half - 1);
    out += "<path class=\"axis\" d=\"M" + number(x) + " " + number(kHeight - kBottom) +
           "v4\"/><text class=\"tick\" text-anchor=\"middle\" x=\"" + number(label_x) + "\" y=\"" +
           number(kHeight - 7) + "\">" + tick_label(tick) + "</text>";
  }
  return out + "<path class=\"axis\" d=\"M" + number(scale.left()) + " " +
         number(kHeight - kBottom) + "H" + number(kWidth - kRight) + "\"/>";
}

std::string path_of(const std::vector<Point>& points, const Scale& scale, const std::string& css) {
  std::string d;
  for (const Point& point : points) {
    d += (d.empty() ? "M" : "L") + number(scale.x(point.x)) + " " + number(scale.y(point.y));
  }
  return "<path class=\"" + css + "\" d=\"" + d + "\"/>";
}

std::string render_curve(const Curve& curve, const Scale& scale) {
  const std::string css = curve.series->css;
  std::string out;
  const bool with_raw = curve.series->style == LineStyle::kRawAndSmooth;
  if (with_raw) out += path_of(downsample(curve.raw, kMaxPoints), scale, "raw " + css);
  const std::vector<Point> line = downsample(curve.line, kMaxPoints);
  out += path_of(line, scale, "line " + css);
  const bool few = line.size() <= (curve.series->style == LineStyle::kDots ? 60u : 1u);
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

/// Invisible strips over the plot. With the pointer on one, style sheet rules show its line and
/// dots, and the browser its title.
std::string render_hover(const std::vector<Curve>& curves, const Scale& scale) {
  const Range x = scale.x_range();
  const double width = (x.high - x.low) / kHoverStrips;
  std::string out;
  for (int strip = 0; strip < kHoverStrips; ++strip) {
    const double middle = x.low + (strip + 0.5) * width;
    std::string title, dots;
    double at = middle;
    for (const Curve& curve : curves) {
      const bool sparse = curve.series->style == LineStyle::kDots;
      const auto point = point_near(curve.line, middle, sparse ? width : 2 * width);
      if (!point) continue;
      if (title.empty()) at = point->x;
      title += "\n" + curve.series->name + " " + value_text(point->y);
      dots += "<circle class=\"dot " + std::string(curve.series->css) + "\" cx=\"" +
              number(scale.x(point->x)) + "\" cy=\"" + number(scale.y(point->y)) + "\" r=\"3.4\"/>";
    }
    if (title.empty()) continue;
    const double left = scale.x(x.low + strip * width);
    const double right = scale.x(x.low + (strip + 1) * width);
    out += "<g class=\"hover\"><title>step " + with_thousands(std::llround(at)) +
           escape_html(title) + "</title><rect x=\"" + number(left) + "\" y=\"" + number(kTop) +
           "\" width=\"" + number(right - left) + "\" height=\"" +
           number(kHeight - kTop - kBottom) + "\"/><path d=\"M" + number(scale.x(at)) + " " +
           number(kTop) + "V" + number(kHeight - kBottom) + "\"/>" + dots + "</g>";
  }
  return out;
}

std::string render_heading(const Chart& chart) {
  std::string legend;
  if (chart.series.size() > 1) {
    for (const Series& series : chart.series) {
      if (series.points.empty()) continue;
      legend += "<span class=\"key\"><i class=\"" + std::string(series.css) + "\"></i>" +
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
  out += "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
         "\" role=\"img\" aria-label=\"" + escape_html(chart.title + ": " + chart.summary) + "\">" +
         render_axes(scale);
  const std::string x = number(scale.left() - 4), y = number(kTop - 4);
  const std::string width = number(kWidth - scale.left() + 4);
  const std::string height = number(kHeight - kBottom - kTop + 8);
  out += "<svg x=\"" + x + "\" y=\"" + y + "\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"" + x + " " + y + " " + width + " " + height + "\">" + plot + "</svg>";
  return out + render_hover(curves, scale) + "</svg></figure>\n";
}

}  // namespace stretto::report
