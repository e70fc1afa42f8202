#include "report/comparison_charts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

constexpr size_t kColours = 8;
constexpr size_t kMostRaw = 3;  // of more runs, the faint lines of single updates hide each other
constexpr size_t kMostLegend = 4;  // of more runs, the table above the charts is the legend
constexpr size_t kLongestRunName = 28;
constexpr double kMostMeasured = 1e15;  // seconds or tokens: more is damage, and no axis for others

/// From steps to another measure: straight lines between the steps that events tell, from 0 at step
/// 0; behind the last one as between the last two.
class StepMeasure {
 public:
  /// @param points  step and measure, steps ascending
  explicit StepMeasure(const std::vector<Point>& points) {
    for (const Point& point : points) {
      if (point.x <= known_.back().x || !(point.y >= 0 && point.y < kMostMeasured)) continue;
      known_.push_back({point.x, std::max(point.y, known_.back().y)});
    }
  }
  bool is_known() const { return known_.size() > 1; }

  double at(double step) const {
    auto after = std::ranges::lower_bound(known_, step, {}, &Point::x);
    if (after == known_.begin()) return known_.front().y;
    if (after == known_.end()) --after;
    const Point &to = *after, &from = *(after - 1);
    return from.y + (step - from.x) / (to.x - from.x) * (to.y - from.y);
  }

 private:
  std::vector<Point> known_{{0, 0}};
};

StepMeasure time_of(const ComparedRun& run) {
  std::vector<Point> points;
  for (const MetricsEvent& event : run.events) {
    if (event.seconds && event.event != "end") {
      points.push_back({static_cast<double>(event.step), *event.seconds});
    }
  }
  return StepMeasure(points);
}

// The updates between two events are taken for as large as these two are on average.
StepMeasure counted_size(const ComparedRun& run) {
  std::vector<Point> points;
  double sum = 0, last_step = 0, last_size = 0;
  for (const MetricsEvent& event : run.events) {
    if (event.event != "train" || run.display.rate.batch.empty()) continue;
    const auto size = event.number(run.display.rate.batch);
    const auto step = static_cast<double>(event.step);
    if (!size || !(*size >= 0 && *size < kMostMeasured) || step <= last_step) continue;
    sum += (step - last_step) * (points.empty() ? *size : (last_size + *size) / 2);
    points.push_back({step, sum});
    last_step = step;
    last_size = *size;
  }
  return StepMeasure(points);
}

/// A measure of progress, and where each run stands in it.
struct Measure {
  std::string over;                              ///< "tokens"
  std::string unit;                              ///< as Chart::x_unit
  double scale = 1;                              ///< of what `progress` gives
  std::vector<std::optional<StepMeasure>> runs;  ///< absent: not known, or of another unit

  bool is_known() const {
    return std::ranges::any_of(runs, [](const auto& run) { return run.has_value(); });
  }
  double at(size_t run, double step) const {
    return unit.empty() ? step : scale * runs[run]->at(step);
  }
  bool has(size_t run) const { return unit.empty() || runs[run].has_value(); }
};

// In what people say: seconds of a short run, hours of a long one.
Measure time_measure(const std::vector<ComparedRun>& runs) {
  Measure time{.over = "time", .unit = "seconds", .runs = {}};
  double longest = 0;
  for (const ComparedRun& run : runs) {
    const StepMeasure progress = time_of(run);
    time.runs.push_back(progress.is_known() ? std::optional(progress) : std::nullopt);
    longest = std::max(longest, trained_seconds(run).value_or(0));
  }
  if (longest > 3 * 3600) {
    time.unit = "hours";
    time.scale = 1.0 / 3600;
  } else if (longest > 3 * 60) {
    time.unit = "minutes";
    time.scale = 1.0 / 60;
  }
  return time;
}

std::vector<Measure> measures_of(const std::vector<ComparedRun>& runs) {
  std::vector<Measure> measures{{.over = "updates", .unit = {}, .runs = {}}};
  for (const ComparedRun& run : runs) {
    const std::string& unit = run.display.rate.unit;
    const bool known =
        std::ranges::any_of(measures, [&](const Measure& measure) { return measure.unit == unit; });
    if (known) continue;
    Measure measure{.over = unit, .unit = unit, .runs = {}};
    for (const ComparedRun& other : runs) {
      const StepMeasure progress = counted_size(other);
      const bool counts = other.display.rate.unit == unit && progress.is_known();
      measure.runs.push_back(counts ? std::optional(progress) : std::nullopt);
    }
    if (measure.is_known()) measures.push_back(std::move(measure));
  }
  Measure time = time_measure(runs);
  if (time.is_known()) measures.push_back(std::move(time));
  return measures;
}

/// A chart before it is drawn over a measure.
struct Drawn {
  Chart chart;
  LineStyle style = LineStyle::kLine;
  std::vector<std::vector<Point>> points = {};  ///< of each run, over its steps
};

std::string best_of_runs(const NumberStyle& style, const Drawn& drawn,
                         const std::vector<ComparedRun>& runs) {
  std::vector<bool> measured;
  for (const auto& points : drawn.points) measured.push_back(!points.empty());
  if (!are_comparable(runs, measured)) return "";
  std::optional<double> best;
  size_t of = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const Point& point : drawn.points[i]) {
      if (point.x <= 0) continue;
      const bool better = !best || (style.higher_is_better ? point.y > *best : point.y < *best);
      if (!better) continue;
      best = point.y;
      of = i;
    }
  }
  if (!best) return "";
  const bool is_score = style.higher_is_better || style.of_validation;
  return "best " + (is_score ? fixed(*best, style.decimals) : short_number(*best)) + ": " +
         runs[of].name;
}

// Numbers that share a chart on the page of one run have one each here.
std::string title_of_number(const NumberStyle& style, const Curves& curves) {
  const auto same = [&](const NumberStyle& other) { return other.chart == style.chart; };
  const bool is_shared = std::ranges::count_if(curves.styles, same) > 1;
  return is_shared ? style.chart + ": " + style.label : style.chart;
}

std::vector<Drawn> shared_number_charts(const std::vector<ComparedRun>& runs,
                                        const std::vector<Curves>& curves) {
  std::vector<Drawn> all;
  std::vector<std::string> names;
  for (const Curves& first : curves) {
    for (const NumberStyle& style : first.styles) {
      if (style.chart.empty() || std::ranges::count(names, style.name) > 0) continue;
      names.push_back(style.name);
      const std::string title = title_of_number(style, first);
      const Chart chart{.title = title,
                        .summary = {},
                        .logarithmic = style.axis == Axis::kLogarithmic,
                        .from_zero = style.axis == Axis::kFromZero,
                        .series = {}};
      Drawn train{.chart = chart, .style = LineStyle::kRawAndSmooth};
      Drawn valid{.chart = chart, .style = LineStyle::kDots};
      for (const Curves& run : curves) {
        const auto found = run.numbers.find(style.name);
        const bool has = found != run.numbers.end();
        train.points.push_back(has ? found->second.train : std::vector<Point>{});
        valid.points.push_back(has ? found->second.valid : std::vector<Point>{});
      }
      if (!style.of_validation) {
        train.chart.title += ", training";
        valid.chart.title += ", validation";
      }
      valid.chart.summary = best_of_runs(style, valid, runs);
      all.push_back(std::move(train));
      all.push_back(std::move(valid));
    }
  }
  return all;
}

Drawn chart_of_runs(Chart chart, LineStyle style, const std::vector<Curves>& curves,
                    const std::function<std::vector<Point>(size_t)>& points) {
  Drawn drawn{.chart = std::move(chart), .style = style};
  for (size_t i = 0; i < curves.size(); ++i) drawn.points.push_back(points(i));
  return drawn;
}

// One chart for each unit.
std::vector<Drawn> shared_rate_charts(const std::vector<ComparedRun>& runs,
                                      const std::vector<Curves>& curves) {
  std::vector<Drawn> charts;
  for (const ComparedRun& run : runs) {
    const std::string title = run.display.rate.title();
    const bool known =
        std::ranges::any_of(charts, [&](const Drawn& drawn) { return drawn.chart.title == title; });
    if (known) continue;
    charts.push_back(chart_of_runs({.title = title, .summary = {}, .from_zero = true, .series = {}},
                                   LineStyle::kRawAndSmooth, curves, [&](size_t i) {
                                     const bool same = runs[i].display.rate.title() == title;
                                     return same ? curves[i].rate : std::vector<Point>{};
                                   }));
  }
  return charts;
}

std::vector<Drawn> shared_charts(const std::vector<ComparedRun>& runs,
                                 const std::vector<Curves>& curves) {
  std::vector<Drawn> all = shared_number_charts(runs, curves);
  all.push_back(
      chart_of_runs({.title = "Learning rate", .summary = {}, .from_zero = true, .series = {}},
                    LineStyle::kLine, curves, [&](size_t i) { return curves[i].lr; }));
  all.push_back(chart_of_runs({.title = "Gradient norm", .summary = {}, .series = {}},
                              LineStyle::kRawAndSmooth, curves,
                              [&](size_t i) { return curves[i].grad_norm; }));
  auto rates = shared_rate_charts(runs, curves);
  std::ranges::move(rates, std::back_inserter(all));
  const size_t least = std::min<size_t>(runs.size(), 2);
  std::erase_if(all, [&](const Drawn& drawn) {
    const auto empty = [](const auto& points) { return points.empty(); };
    const auto without = std::ranges::count_if(drawn.points, empty);
    return drawn.points.size() - static_cast<size_t>(without) < least;
  });
  return all;
}

ComparedCharts charts_over(const Measure& measure, const std::vector<Drawn>& all,
                           const std::vector<ComparedRun>& runs,
                           const std::vector<Curves>& curves) {
  ComparedCharts charts{.over = measure.over, .charts = {}, .runs = {}};
  double last = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (measure.has(i))
      last = std::max(last, measure.at(i, static_cast<double>(curves[i].last_step)));
  }
  for (const Drawn& drawn : all) {
    Chart chart = drawn.chart;
    chart.x_unit = measure.unit;
    chart.last_step = last;
    chart.legend = runs.size() <= kMostLegend;
    std::vector<size_t> which;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (drawn.points[i].empty() || !measure.has(i)) continue;
      Series series{.name = cut_text(runs[i].name, kLongestRunName),
                    .css = class_of_run(i),
                    .style = drawn.style,
                    .points = drawn.points[i]};
      if (series.style == LineStyle::kRawAndSmooth && runs.size() > kMostRaw) {
        series.style = LineStyle::kSmooth;
      }
      for (Point& point : series.points) point.x = measure.at(i, point.x);
      chart.series.push_back(std::move(series));
      which.push_back(i);
    }
    if (which.empty()) continue;
    charts.charts.push_back(std::move(chart));
    charts.runs.push_back(std::move(which));
  }
  return charts;
}

}  // namespace

std::vector<ComparedCharts> compared_charts(const Comparison& comparison,
                                            const std::vector<Curves>& curves) {
  if (!has_curves(comparison)) return {};
  const std::vector<Drawn> all = shared_charts(comparison.runs, curves);
  std::vector<ComparedCharts> charts;
  for (const Measure& measure : measures_of(comparison.runs)) {
    charts.push_back(charts_over(measure, all, comparison.runs, curves));
  }
  return charts;
}

std::string class_of_run(size_t run) {
  const size_t dashes = run / kColours % 3;
  const std::string colour = "ink" + std::to_string(run % kColours + 1);
  return dashes == 0 ? colour : colour + " dash" + std::to_string(dashes);
}

}  // namespace stretto::report
