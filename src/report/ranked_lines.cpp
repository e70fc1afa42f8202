#include "report/ranked_lines.h"

#include "base/text.h"
#include "report/chart_frame.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

constexpr double kWidth = kWideChartWidth, kHeight = 300, kSide = 64, kTop = 40, kFoot = 24;
constexpr size_t kLongestName = 16, kLongestTooltip = 500;  // code points
constexpr size_t kMostPoints = 200;                         // of one curve
constexpr double kFaintest = 0.16, kStrongest = 0.75;

// 0 the best, 1 the last.
double share_of(size_t rank, size_t count) {
  return count < 2 ? 0 : static_cast<double>(rank) / static_cast<double>(count - 1);
}

// The class of a line or a dot, and how faint it is. @param share  of the way from best to last
std::string looks(const std::string& css, bool is_best, double share) {
  return "class=\"" + css + (is_best ? " winner" : "") +
         "\" style=\"opacity:" + fixed(kStrongest + share * (kFaintest - kStrongest), 2) + "\"";
}

// Beneath each line lies a broad one that is not seen, for the pointer.
std::string render_line(const RankedLine& line, const std::string& d, bool is_best, double share) {
  return "<g class=\"one\"><title>" + escape_html(line.title, kLongestTooltip) +
         "</title><path class=\"reach\" d=\"" + d + "\"/><path " + looks("ranked", is_best, share) +
         " d=\"" + d + "\"/></g>";
}

void add_point(std::string& d, double x, double y) {
  d += (d.empty() ? "M" : "L") + svg_number(x) + " " + svg_number(y);
}

double axis_x(size_t axis, size_t count) {
  return count < 2 ? kWidth / 2
                   : kSide + static_cast<double>(axis) * (kWidth - 2 * kSide) /
                                 static_cast<double>(count - 1);
}

double axis_y(double share) {
  return kHeight - kFoot - share * (kHeight - kFoot - kTop);
}

std::string render_axis(const ParallelAxis& axis, double x) {
  std::string out = "<path class=\"axis\" d=\"M" + svg_number(x) + " " + svg_number(axis_y(1)) +
                    "V" + svg_number(axis_y(0)) +
                    "\"/><text class=\"names\" text-anchor=\"middle\" x=\"" + svg_number(x) +
                    "\" y=\"16\">" + escape_html(axis.title, 2 * kLongestName) + "</text>";
  for (const auto& [share, name] : axis.names) {
    out += "<text x=\"" + svg_number(x + 5) + "\" y=\"" + svg_number(axis_y(share)) +
           "\" dy=\".34em\">" + escape_html(name, kLongestName) + "</text>";
  }
  return out;
}

}  // namespace

const char* const kRankedLinesStyle =
    ".ranked{fill:none;stroke:var(--ink1);stroke-width:1.1;stroke-linejoin:round}"
    ".ranked.winner{stroke:var(--ink2);stroke-width:2.4;opacity:1!important}"
    "g.one:hover .ranked{stroke-width:2.6;opacity:1!important}"
    "g.one .reach{fill:none;stroke:transparent;stroke-width:9}"
    ".end{fill:var(--ink1)}.winner.end{fill:var(--ink2)}.names{font-weight:600}";

std::string render_ranked_curves(const RankedCurves& picture) {
  Chart chart{.title = picture.title, .wide = true, .last_step = picture.last_step};
  for (const auto& line : picture.lines) {
    chart.series.push_back({.points = downsample(line.points, kMostPoints)});
  }
  const auto curves = curves_of(chart);
  const Figure figure{picture.title, picture.summary};
  if (curves.empty()) return render_empty_figure(figure);
  const Scale scale(chart, curves);
  std::string plot;
  for (size_t rank = curves.size(); rank-- > 0;) {  // the best on top
    const auto& points = curves[rank].line;
    const auto line = static_cast<size_t>(curves[rank].series - chart.series.data());
    const double share = share_of(rank, curves.size());
    std::string d;
    for (const Point& point : points) add_point(d, scale.x(point.x), scale.y(point.y));
    plot += render_line(picture.lines[line], d, line == 0, share) + "<circle " +
            looks("end", line == 0, share) + " r=\"2\" cx=\"" +
            svg_number(scale.x(points.back().x)) + "\" cy=\"" +
            svg_number(scale.y(points.back().y)) + "\"/>";
  }
  return render_framed(figure, scale, plot);
}

std::string render_parallel_coordinates(const ParallelCoordinates& picture) {
  const size_t axes = picture.axes.size() + 1, count = picture.lines.size();
  std::string svg;
  for (size_t rank = count; rank-- > 0;) {
    std::string d;
    for (const Point& point : picture.lines[rank].points) {
      add_point(d, axis_x(static_cast<size_t>(point.x), axes), axis_y(point.y));
    }
    const double share = share_of(rank, count);
    add_point(d, axis_x(axes - 1, axes), axis_y(1 - share));
    svg += render_line(picture.lines[rank], d, rank == 0, share);
  }
  for (size_t i = 0; i + 1 < axes; ++i) svg += render_axis(picture.axes[i], axis_x(i, axes));
  svg += render_axis({"place", {{1, "best"}, {0, "last"}}}, axis_x(axes - 1, axes));
  return render_figure({picture.title, picture.summary}, kWidth, kHeight, svg);
}

}  // namespace stretto::report
