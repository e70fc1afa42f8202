#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "report/batch_figure.h"
#include "report/chart_frame.h"
#include "report/comparison_charts.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

constexpr double kPlaneWidth = kWideChartWidth, kPlaneHeight = 300;
constexpr double kPlaneLeft = 64, kPlaneRight = 24, kPlaneTop = 14, kPlaneFoot = 44;
constexpr double kHalfCap = 4;  // half of the end of an error bar
constexpr double kDeviations = 2;
constexpr int kMostTicks = 6;
constexpr size_t kMostName = 200, kMostOthers = 20;

/// Batches lie on a logarithmic axis, values on a linear one.
class BatchPlane {
 public:
  explicit BatchPlane(const BatchFigure& figure) {
    for (const auto& line : figure.lines) {
      for (const auto& point : line.points) {
        batches_.insert(point.batch);
        values_.add(point.mean - kDeviations * point.deviation);
        values_.add(point.mean + kDeviations * point.deviation);
      }
    }
    const double range = values_.high - values_.low;
    const double margin = range > 0 ? 0.05 * range : std::max(0.05 * std::abs(values_.high), 0.5);
    values_.low -= margin;
    values_.high += margin;
  }

  double x(double batch) const {
    const double first = std::log(*batches_.begin()), last = std::log(*batches_.rbegin());
    const double share = last > first ? (std::log(batch) - first) / (last - first) : 0.5;
    return kPlaneLeft + 24 + share * (kPlaneWidth - kPlaneLeft - kPlaneRight - 48);
  }
  double y(double value) const {
    const double share = (value - values_.low) / (values_.high - values_.low);
    return kPlaneHeight - kPlaneFoot - share * (kPlaneHeight - kPlaneFoot - kPlaneTop);
  }
  const std::set<double>& batches() const { return batches_; }
  std::vector<double> ticks() const { return nice_ticks(values_.low, values_.high, kMostTicks); }

 private:
  std::set<double> batches_;
  Range values_;
};

std::string batch_text(double batch) {
  return with_thousands(std::llround(batch));
}

std::string render_batch_axes(const BatchFigure& figure, const BatchPlane& plane) {
  std::string out;
  const auto ticks = plane.ticks();
  const auto labels = tick_labels(ticks);
  for (size_t i = 0; i < ticks.size(); ++i) {
    const std::string y = svg_number(plane.y(ticks[i]));
    out += "<path class=\"grid\" d=\"M" + svg_number(kPlaneLeft) + " " + y + "H" +
           svg_number(kPlaneWidth - kPlaneRight) +
           "\"/><text class=\"tick\" text-anchor=\"end\" x=\"" + svg_number(kPlaneLeft - 7) +
           "\" y=\"" + y + "\" dy=\".34em\">" + labels[i] + "</text>";
  }
  const std::string foot = svg_number(kPlaneHeight - kPlaneFoot);
  double free_from = 0;  // a label that would lie on the one before is left out
  for (const double batch : plane.batches()) {
    const std::string label = batch_text(batch);
    const double x = plane.x(batch);
    const double half = kTickCharacterWidth / 2 * static_cast<double>(label.size());
    out += "<path class=\"axis\" d=\"M" + svg_number(x) + " " + foot + "v4\"/>";
    if (x - half < free_from) continue;
    free_from = x + half + kTickCharacterWidth;
    out += "<text class=\"tick\" text-anchor=\"middle\" x=\"" + svg_number(x) + "\" y=\"" +
           svg_number(kPlaneHeight - kPlaneFoot + 18) + "\">" + label + "</text>";
  }
  return out + "<path class=\"axis\" d=\"M" + svg_number(kPlaneLeft) + " " + foot + "H" +
         svg_number(kPlaneWidth - kPlaneRight) +
         "\"/><text class=\"tick\" text-anchor=\"middle\" x=\"" +
         svg_number((kPlaneLeft + kPlaneWidth - kPlaneRight) / 2) + "\" y=\"" +
         svg_number(kPlaneHeight - 7) + "\">" + escape_html(figure.unit, kMostName) +
         " of an update</text>";
}

std::string text_of_point(const BatchFigure& figure, const BatchPoint& point) {
  const std::string mean = fixed(point.mean, figure.decimals);
  return point.runs.size() < 2 ? mean : mean + " ± " + fixed(point.deviation, figure.decimals);
}

std::string render_batch_point(const BatchFigure& figure, const BatchLine& line,
                               const BatchPoint& point, const std::string& css,
                               const BatchPlane& plane) {
  const double x = plane.x(point.batch), half = kDeviations * point.deviation;
  std::string out =
      "<g><title>" +
      escape_html(line.name + "\n" + batch_text(point.batch) + " " + figure.unit + ": " +
                      text_of_point(figure, point) + "\n" + counted(std::ssize(point.runs), "run"),
                  2 * kMostName) +
      "</title>";
  if (half > 0) {
    const auto cap = [&](double value) {
      return "M" + svg_number(x - kHalfCap) + " " + svg_number(plane.y(value)) + "h" +
             svg_number(2 * kHalfCap);
    };
    out += "<path class=\"line " + css + "\" d=\"M" + svg_number(x) + " " +
           svg_number(plane.y(point.mean - half)) + "V" + svg_number(plane.y(point.mean + half)) +
           cap(point.mean - half) + cap(point.mean + half) + "\"/>";
  }
  return out + "<circle class=\"dot " + css + "\" cx=\"" + svg_number(x) + "\" cy=\"" +
         svg_number(plane.y(point.mean)) + "\" r=\"3.4\"/></g>";
}

std::string render_batch_line(const BatchFigure& figure, const BatchLine& line,
                              const std::string& css, const BatchPlane& plane) {
  std::string d, points;
  for (const auto& point : line.points) {
    d += (d.empty() ? "M" : "L") + svg_number(plane.x(point.batch)) + " " +
         svg_number(plane.y(point.mean));
    points += render_batch_point(figure, line, point, css, plane);
  }
  return "<path class=\"line " + css + "\" d=\"" + d + "\"/>" + points;
}

std::string key_of_line(const BatchFigure& figure, size_t line) {
  return "<span class=\"key\"><i class=\"" + class_of_run(line) + "\"></i>" +
         escape_html(figure.lines[line].name, kMostName) + "</span>";
}

std::string render_table(const BatchFigure& figure, const std::set<double>& batches) {
  std::string out =
      "<div class=\"card table whole\"><table class=\"list\"><thead><tr><th class=\"text\">" +
      escape_html(figure.title, kMostName) + "</th>";
  for (const double batch : batches) out += "<th>" + batch_text(batch) + "</th>";
  out += "</tr></thead><tbody>";
  for (size_t i = 0; i < figure.lines.size(); ++i) {
    out += "<tr><th scope=\"row\">" + key_of_line(figure, i) + "</th>";
    for (const double batch : batches) {
      const auto& points = figure.lines[i].points;
      const auto found = std::ranges::find(points, batch, &BatchPoint::batch);
      out += found == points.end() ? "<td>–</td>"
                                   : "<td>" + text_of_point(figure, *found) + "<small>" +
                                         counted(std::ssize(found->runs), "run") + "</small></td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string note_of(const BatchFigure& figure) {
  std::string note =
      "Of each run the median of its last " + std::to_string(BatchFigure::kLastValidations) +
      " validations; of several, their mean and standard deviation. Error bars reach "
      "over two deviations in each direction.";
  if (figure.others.empty()) return note;
  std::vector<std::string> others = figure.others;
  if (others.size() > kMostOthers) {
    others.resize(kMostOthers);
    others.emplace_back("…");
  }
  return note + " The runs of a line also differ in " + join(others, ", ") + ".";
}

}  // namespace

std::string render_batch_figure(const BatchFigure& figure) {
  const BatchPlane plane(figure);
  std::string svg = render_batch_axes(figure, plane), legend;
  for (size_t i = 0; i < figure.lines.size(); ++i) {
    svg += render_batch_line(figure, figure.lines[i], class_of_run(i), plane);
    legend += key_of_line(figure, i);
  }
  return "<section><h2>Against the batch</h2>" +
         render_figure({.title = figure.title, .summary = {}, .legend = legend}, kPlaneWidth,
                       kPlaneHeight, svg) +
         render_table(figure, plane.batches()) + "<p class=\"note\">" +
         escape_html(note_of(figure), 20 * kMostName) + "</p></section>\n";
}

}  // namespace stretto::report
