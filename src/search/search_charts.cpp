#include "search/search_charts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/chart_scale.h"
#include "report/html_text.h"

namespace stretto::search {
namespace {

using report::escape_html;
using report::kChartHeight;
using report::kChartRight;
using report::kChartTop;
using report::kChartWidth;

constexpr size_t kMostPoints = 200;   // of one curve
constexpr size_t kMostTrials = 1000;  // the best of more
constexpr double kWidth = 920, kHeight = 300, kSide = 64, kTop = 40, kFoot = 24;
constexpr size_t kMostNames = 8;     // values of an axis that are named
constexpr size_t kLongestName = 16;  // code points
constexpr double kFaintest = 0.16, kStrongest = 0.75;

std::string number(double value) {
  return fixed(value, 1);
}

// The trials with a result, the best first.
std::vector<TrialId> ranked(const SearchState& state) {
  std::vector<TrialId> order;
  for (const auto& trial : state.trials()) {
    const auto last = trial.reports.empty() ? std::nullopt : trial.reports.back().value;
    if (state.plan().score_of(last)) order.push_back(trial.id);
  }
  std::sort(order.begin(), order.end(),
            [&](TrialId a, TrialId b) { return state.is_better(a, b); });
  if (order.size() > kMostTrials) order.resize(kMostTrials);
  return order;
}

// 0 the best, 1 the last.
double place_of(size_t place, size_t count) {
  return count < 2 ? 0 : static_cast<double>(place) / static_cast<double>(count - 1);
}

std::string opacity(double place) {
  return "opacity:" + fixed(kStrongest + place * (kFaintest - kStrongest), 2);
}

// A line that can be pointed at, with what it is.
std::string line_of(const std::string& d, bool is_best, double place, const std::string& title) {
  return "<g class=\"one\"><title>" + escape_html(title, 500) +
         "</title><path class=\"reach\" d=\"" + d + "\"/><path class=\"trial" +
         (is_best ? " winner" : "") + "\" style=\"" + opacity(place) + "\" d=\"" + d + "\"/></g>";
}

std::string title_of(const SearchState& state, TrialId id) {
  const Trial& trial = state.trials()[static_cast<size_t>(id)];
  const auto value = trial.reports.empty() ? std::nullopt : trial.reports.back().value;
  return "trial " + std::to_string(id) +
         (value ? ": " + fixed(*value, 4) + " at " + with_thousands(trial.updates()) : "") + "\n" +
         state.plan().space.text(trial.point);
}

std::string figure(const std::string& title, const std::string& summary, const std::string& svg) {
  return "<figure class=\"card\"><figcaption><h3>" + escape_html(title) + "</h3><b>" +
         escape_html(summary) + "</b></figcaption>" + svg + "</figure>\n";
}

std::string axes(const report::Scale& scale) {
  std::string out;
  for (const auto& tick : scale.y_ticks()) {
    const std::string y = number(scale.y(tick.value));
    out += "<path class=\"grid\" d=\"M" + number(scale.left()) + " " + y + "H" +
           number(kChartWidth - kChartRight) + "\"/><text text-anchor=\"end\" x=\"" +
           number(scale.left() - 7) + "\" y=\"" + y + "\" dy=\".34em\">" + tick.label + "</text>";
  }
  for (const auto& tick : scale.x_ticks()) {
    out += "<text text-anchor=\"middle\" x=\"" +
           number(std::min(scale.x(tick.value), kChartWidth - 16)) + "\" y=\"" +
           number(kChartHeight - 7) + "\">" + tick.label + "</text>";
  }
  return out;
}

double axis_x(size_t axis, size_t count) {
  return count < 2 ? kWidth / 2
                   : kSide + static_cast<double>(axis) * (kWidth - 2 * kSide) /
                                 static_cast<double>(count - 1);
}

double axis_y(double share) {
  return kHeight - kFoot - share * (kHeight - kFoot - kTop);
}

struct Name {
  double share;
  std::string text;
};

// What stands beside an axis: the ends of an interval, or its values.
std::vector<Name> names_of(const Parameter& parameter) {
  if (!parameter.is_discrete()) {
    const Parameter& p = parameter;
    return {{0, p.at(0)}, {1, p.at(0x1.fffffffffffffp-1)}};
  }
  std::vector<Name> names;
  for (const auto& value : parameter.values) {
    if (names.size() < kMostNames) names.push_back({parameter.position(value), value});
  }
  return names;
}

std::string axis_of(const std::string& title, double x, const std::vector<Name>& names) {
  std::string out = "<path class=\"axis\" d=\"M" + number(x) + " " + number(axis_y(1)) + "V" +
                    number(axis_y(0)) + "\"/><text class=\"names\" text-anchor=\"middle\" x=\"" +
                    number(x) + "\" y=\"16\">" + escape_html(title, 2 * kLongestName) + "</text>";
  for (const auto& name : names) {
    out += "<text x=\"" + number(x + 5) + "\" y=\"" + number(axis_y(name.share)) +
           "\" dy=\".34em\">" + escape_html(name.text, kLongestName) + "</text>";
  }
  return out;
}

}  // namespace

std::string render_trial_curves(const SearchState& state, const TrialCurves& curves) {
  const auto order = ranked(state);
  report::Chart chart{.title = state.plan().metric};
  std::vector<TrialId> drawn;
  for (auto trial = order.rbegin(); trial != order.rend(); ++trial) {  // the best on top
    const auto found = curves.find(*trial);
    if (found == curves.end() || found->second.empty()) continue;
    chart.series.push_back({.points = report::downsample(found->second, kMostPoints)});
    drawn.push_back(*trial);
  }
  chart.last_step = static_cast<double>(state.plan().max_steps);
  const auto lines = report::curves_of(chart);
  const std::string title = state.plan().metric + " of each trial over its updates";
  if (lines.empty()) return figure(title, "", "<p class=\"none\">Nothing measured yet</p>");
  const report::Scale scale(chart, lines);
  std::string svg = "<svg viewBox=\"0 0 " + number(kChartWidth) + " " + number(kChartHeight) +
                    "\" role=\"img\" aria-label=\"" + escape_html(title) + "\">" + axes(scale);
  for (const auto& line : lines) {
    const auto which = static_cast<size_t>(line.series - chart.series.data());
    const TrialId trial = drawn[which];
    const double place = place_of(drawn.size() - 1 - which, drawn.size());
    std::string d;
    for (const auto& point : line.line) {
      d += (d.empty() ? "M" : "L") + number(scale.x(point.x)) + " " + number(scale.y(point.y));
    }
    const bool is_best = state.best() == trial;
    svg += line_of(d, is_best, place, title_of(state, trial)) + "<circle class=\"end" +
           (is_best ? " winner" : "") + "\" style=\"" + opacity(place) + "\" r=\"2\" cx=\"" +
           number(scale.x(line.line.back().x)) + "\" cy=\"" + number(scale.y(line.line.back().y)) +
           "\"/>";
  }
  return figure(title, counted(static_cast<int64_t>(lines.size()), "trial"), svg + "</svg>");
}

std::string render_parallel_coordinates(const SearchState& state) {
  const auto& parameters = state.plan().space.parameters;
  const auto order = ranked(state);
  const size_t count = parameters.size() + 1;
  const std::string title = "Points and their place";
  std::string svg = "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
                    "\" role=\"img\" aria-label=\"" + title + "\">";
  for (size_t place = order.size(); place-- > 0;) {
    const Trial& trial = state.trials()[static_cast<size_t>(order[place])];
    std::string d;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!trial.point[i]) continue;
      d += (d.empty() ? "M" : "L") + number(axis_x(i, count)) + " " +
           number(axis_y(parameters[i].position(*trial.point[i])));
    }
    const double share = place_of(place, order.size());
    d += (d.empty() ? "M" : "L") + number(axis_x(count - 1, count)) + " " +
         number(axis_y(1 - share));
    svg += line_of(d, place == 0, share, title_of(state, trial.id));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& key = parameters[i].key;
    svg += axis_of(key.substr(key.rfind('.') + 1), axis_x(i, count), names_of(parameters[i]));
  }
  svg += axis_of("place", axis_x(count - 1, count), {{1, "best"}, {0, "last"}});
  return figure(title, "the trials that were trained furthest come first", svg + "</svg>");
}

}  // namespace stretto::search
