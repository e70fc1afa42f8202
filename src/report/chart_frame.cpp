#include "report/chart_frame.h"

#include <algorithm>

#include "base/text.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

std::string render_axes(const Scale& scale) {
  std::string out;
  for (const Tick& tick : scale.y_ticks()) {
    const std::string y = svg_number(scale.y(tick.value));
    out += "<path class=\"grid\" d=\"M" + svg_number(scale.left()) + " " + y + "H" +
           svg_number(scale.width() - kChartRight) +
           "\"/><text class=\"tick\" text-anchor=\"end\" x=\"" + svg_number(scale.left() - 7) +
           "\" y=\"" + y + "\" dy=\".34em\">" + tick.label + "</text>";
  }
  for (const Tick& tick : scale.x_ticks()) {
    const double x = scale.x(tick.value);
    const double half = kTickCharacterWidth / 2 * static_cast<double>(tick.label.size());
    // A label that would stand out of the picture is moved in.
    const double label_x = std::min(x, scale.width() - half - 1);
    out += "<path class=\"axis\" d=\"M" + svg_number(x) + " " +
           svg_number(kChartHeight - kChartBottom) +
           "v4\"/><text class=\"tick\" text-anchor=\"middle\" x=\"" + svg_number(label_x) +
           "\" y=\"" + svg_number(kChartHeight - 7) + "\">" + tick.label + "</text>";
  }
  return out + "<path class=\"axis\" d=\"M" + svg_number(scale.left()) + " " +
         svg_number(kChartHeight - kChartBottom) + "H" + svg_number(scale.width() - kChartRight) +
         "\"/>";
}

// What stands before the picture; the figure is closed behind it.
std::string figure_head(const Figure& figure) {
  return "<figure class=\"card\"><figcaption><h3>" + escape_html(figure.title) + "</h3>" +
         figure.legend + "<b>" + escape_html(figure.summary) + "</b></figcaption>";
}

std::string view_box(const std::string& x, const std::string& y, double width, double height) {
  return "viewBox=\"" + x + " " + y + " " + svg_number(width) + " " + svg_number(height) + "\"";
}

}  // namespace

std::string svg_number(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string render_figure(const Figure& figure, double width, double height,
                          const std::string& svg) {
  return figure_head(figure) + "<svg " + view_box("0", "0", width, height) +
         " role=\"img\" aria-label=\"" + escape_html(figure.title + ": " + figure.summary) + "\">" +
         svg + "</svg></figure>\n";
}

std::string render_empty_figure(const Figure& figure) {
  return figure_head(figure) + "<p class=\"none\">Nothing measured yet</p></figure>\n";
}

std::string render_framed(const Figure& figure, const Scale& scale, const std::string& plot,
                          const std::string& above) {
  // A nested <svg> clips without needing an id that is unique on the page.
  const std::string x = svg_number(scale.left() - 4), y = svg_number(kChartTop - 4);
  const double width = scale.width() - scale.left() + 4;
  const double height = kChartHeight - kChartBottom - kChartTop + 8;
  const std::string clipped = "<svg x=\"" + x + "\" y=\"" + y + "\" width=\"" + svg_number(width) +
                              "\" height=\"" + svg_number(height) + "\" " +
                              view_box(x, y, width, height) + ">" + plot + "</svg>";
  return render_figure(figure, scale.width(), kChartHeight, render_axes(scale) + clipped + above);
}

}  // namespace stretto::report
