#include "report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "report/chart.h"
#include "report/html_text.h"

namespace stretto::report {
namespace {

/// At half the noise scale a run takes 3 times the fewest updates and 1.5 times the fewest tokens,
/// at twice 1.5 and 3 times (McCandlish et al. 2018, section 2.3), or of what else is counted.
constexpr double kCriticalBand = 2;

Series train_series(const std::vector<Point>& points) {
  return {"training", "ink1", LineStyle::kRawAndSmooth, points};
}
Series valid_series(const std::vector<Point>& points) {
  return {"validation", "ink2", LineStyle::kDots, points};
}

std::string last_value(const std::vector<Point>& points) {
  return points.empty() ? "" : "now " + short_number(recent(points));
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * std::clamp(share, 0.0, 1.0))) + "%";
}

constexpr const char* kInks[] = {"ink1", "ink2", "ink3"};

// What people ask for: the best of the validations; before the first of them, the last value of
// training.
std::string number_summary(const NumberStyle& style, const Curves& curves) {
  const NumberCurves& points = curves.of(style);
  const bool has_valid = style.of_validation || curves.has_validations();
  if (!has_valid) return last_value(points.train);
  return best_text(points.valid, style, curves.best_from);
}

std::vector<Series> series_of(const NumberStyle& style, const Curves& curves) {
  const NumberCurves& points = curves.of(style);
  if (style.of_validation) return {{style.label, "ink2", LineStyle::kDots, points.valid}};
  return {train_series(points.train), valid_series(points.valid)};
}

// Each number with a colour of its own, of validation where there is one.
Series shared_series(const NumberStyle& style, const Curves& curves, size_t place) {
  const NumberCurves& points = curves.of(style);
  const char* ink = kInks[place % std::size(kInks)];
  if (points.valid.empty()) return {style.label, ink, LineStyle::kRawAndSmooth, points.train};
  return {style.label, ink, LineStyle::kDots, points.valid};
}

/// The chart of the numbers that share this title; the first says what the chart is like.
Chart numbers_chart(const std::vector<NumberStyle>& together, const Curves& curves) {
  const NumberStyle& first = together.front();
  Chart chart{.title = first.chart,
              .summary = number_summary(first, curves),
              .logarithmic = first.axis == Axis::kLogarithmic,
              .from_zero = first.axis == Axis::kFromZero};
  if (together.size() == 1) {
    chart.series = series_of(first, curves);
    return chart;
  }
  for (const NumberStyle& style : together) {
    chart.series.push_back(shared_series(style, curves, chart.series.size()));
  }
  return chart;
}

// What validation alone measures has a chart once there is something in it.
bool has_chart(const NumberStyle& style, const Curves& curves) {
  if (style.chart.empty()) return false;
  return !style.of_validation || !curves.of(style).valid.empty();
}

std::vector<Chart> number_charts(const Curves& curves) {
  std::vector<std::vector<NumberStyle>> groups;
  for (const NumberStyle& style : curves.styles) {
    if (!has_chart(style, curves)) continue;
    const auto group = std::ranges::find_if(
        groups, [&](const auto& of) { return of.front().chart == style.chart; });
    if (group == groups.end()) {
      groups.push_back({style});
    } else {
      group->push_back(style);
    }
  }
  std::vector<Chart> charts;
  for (const auto& group : groups) charts.push_back(numbers_chart(group, curves));
  return charts;
}

Chart rate_chart(const Curves& curves, const RateStyle& rate) {
  const auto text = [&] { return with_thousands(std::llround(median(curves.rate))); };
  return {.title = rate.title(),
          .summary = curves.rate.empty() ? "" : "median " + text(),
          .from_zero = true,
          .series = {{rate.unit + "/s", "ink3", LineStyle::kRawAndSmooth, curves.rate}}};
}

/// Updates between two events are not in the file, so this is not the schedule's own peak.
Chart learning_rate_chart(const Curves& curves) {
  std::string summary;
  if (!curves.lr.empty()) {
    const Point highest = *std::max_element(curves.lr.begin(), curves.lr.end(), lower);
    summary = "highest logged " + tick_label(highest.y) + " at " + at_step(highest);
  }
  return {.title = "Learning rate",
          .summary = summary,
          .from_zero = true,
          .series = {{"learning rate", "ink1", LineStyle::kLine, curves.lr}}};
}

Chart gradient_chart(const Curves& curves) {
  return {.title = "Gradient norm",
          .summary = last_value(curves.grad_norm),
          .series = {{"gradient norm", "ink1", LineStyle::kRawAndSmooth, curves.grad_norm}}};
}

/// The noise scale is an estimate: two digits of it.
std::string about(double scale) {
  if (!(scale > 0)) return "0";
  const double power = std::pow(10.0, std::floor(std::log10(scale)) - 1);
  return tick_label(std::round(scale / power) * power);
}

std::string noise_summary(const Curves& curves) {
  const double scale = recent(curves.noise_scale);
  const std::string text = "about " + about(scale);
  if (curves.batch.empty() || !(scale > 0)) return text;
  const double batch = recent(curves.batch);
  const char* where = batch < scale / kCriticalBand   ? "below"
                      : batch > scale * kCriticalBand ? "above"
                                                      : "in";
  return text + "; batch " + where + " the band";
}

Chart noise_chart(const Curves& curves, const std::string& unit) {
  Series scale{"noise scale", "ink1", LineStyle::kRawAndSmooth, curves.noise_scale};
  scale.band = kCriticalBand;
  return {.title = "Noise scale, " + unit,
          .summary = noise_summary(curves),
          .logarithmic = true,
          .series = {scale, {"batch", "ink2", LineStyle::kRawAndSmooth, curves.batch}}};
}

/// Below all charts: in its card it would leave an empty space in the one beside it.
std::string noise_note(const std::string& unit) {
  return "<p class=\"note\">Noise scale, shaded: half to twice the gradient noise scale. A batch "
         "below the band wastes little, and a larger one would save updates. Above it, more " +
         escape_html(unit) + " in an update hardly help.</p>\n";
}

Chart loss_scale_chart(const Curves& curves) {
  const double now = curves.loss_scale.back().y;
  std::string summary =
      "now " + (now >= 1 && now < 1e15 ? with_thousands(std::llround(now)) : tick_label(now));
  if (curves.skipped > 0) {
    summary += "; " + counted(curves.skipped, "update") + " skipped";
  }
  return {.title = "Loss scale",
          .summary = summary,
          .logarithmic = true,
          .series = {{"loss scale", "ink1", LineStyle::kSteps, curves.loss_scale}}};
}

/// The share over the whole run: long updates count by their length.
std::string hidden_text(const Curves& curves) {
  const double hidden = 1 - sum(curves.comm_wait) / sum(curves.comm);
  return std::isfinite(hidden) && !curves.comm_wait.empty() ? percent(hidden) + " hidden" : "";
}

Chart communication_chart(const Curves& curves) {
  std::string summary = hidden_text(curves);
  if (curves.processes > 1) {
    const std::string processes = with_thousands(curves.processes) + " processes";
    summary = summary.empty() ? processes : processes + "; " + summary;
  }
  return {.title = "Communication, ms",
          .summary = summary,
          .from_zero = true,
          .series = {{"under way", "ink1", LineStyle::kRawAndSmooth, curves.comm},
                     {"waited for", "ink2", LineStyle::kRawAndSmooth, curves.comm_wait}}};
}

bool changes(const std::vector<Point>& points) {
  const auto [least, greatest] = std::minmax_element(points.begin(), points.end(), lower);
  return !points.empty() && least->y < greatest->y;
}

}  // namespace

std::string render_charts(const Curves& curves, const Display& display) {
  const std::string& loss_unit = display.loss_unit.name;
  std::vector<Chart> charts = number_charts(curves);
  charts.push_back(rate_chart(curves, display.rate));
  charts.push_back(learning_rate_chart(curves));
  charts.push_back(gradient_chart(curves));
  if (!curves.noise_scale.empty()) charts.push_back(noise_chart(curves, loss_unit));
  if (changes(curves.loss_scale)) charts.push_back(loss_scale_chart(curves));
  if (!curves.comm.empty() && curves.processes != 1) charts.push_back(communication_chart(curves));
  std::string out = "<section class=\"charts\" aria-label=\"curves\">\n";
  for (Chart& chart : charts) {
    chart.last_step = static_cast<double>(curves.last_step);
    out += render_chart(chart);
  }
  out += "</section>\n";
  return curves.noise_scale.empty() ? out : out + noise_note(loss_unit);
}

}  // namespace stretto::report
