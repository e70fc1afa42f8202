#include "report/batch_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace stretto::report {
namespace {

/// Values of keys that shape a line: of the model and of how it learns. Those of other sections,
/// such as lengths in updates, follow the batch.
bool shapes_a_line(const std::string& key) {
  constexpr std::array<std::string_view, 4> kSections{"model.", "loss.", "optim.", "augment."};
  constexpr std::array<std::string_view, 2> kFollowTheBatch{"optim.lr", "optim.reference_batch"};
  const auto begins = [&](std::string_view section) { return key.starts_with(section); };
  const auto is_key = [&](std::string_view other) { return key == other; };
  return std::ranges::any_of(kSections, begins) && std::ranges::none_of(kFollowTheBatch, is_key);
}

/// Names, seeds, the batch, the warm-up and what changes no result.
bool is_expected(const std::string& key, const ComparedRun& run) {
  constexpr std::array<std::string_view, 4> kSections{"run.", "report.", "eval.",
                                                      "schedule.warmup"};
  const auto begins = [&](std::string_view section) { return key.starts_with(section); };
  return std::ranges::any_of(kSections, begins) || std::ranges::count(run.batch.keys, key) > 0;
}

constexpr double kMostValue = 1e15;  // more is damage, and no axis for others

// Of an even number the mean of the two in the middle. Not of none.
double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> value_at_end(const Curves& curves, const NumberStyle& style) {
  const auto found = curves.numbers.find(style.name);
  if (found == curves.numbers.end()) return std::nullopt;
  std::vector<double> values;
  for (const Point& point : found->second.valid) {
    if (point.x > 0 && std::abs(point.y) < kMostValue) values.push_back(point.y);
  }
  if (values.empty()) return std::nullopt;
  const size_t count = std::min(values.size(), BatchFigure::kLastValidations);
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(count));
  const double value = median_of(std::move(values));
  return style.error.empty() ? value : 100 * (1 - value);
}

BatchPoint point_of(double batch, const std::vector<std::pair<size_t, double>>& values) {
  BatchPoint point{.batch = batch, .runs = {}};
  const auto count = static_cast<double>(values.size());
  for (const auto& [run, value] : values) {
    point.mean += value / count;
    point.runs.push_back(run);
  }
  double squares = 0;
  for (const auto& [run, value] : values) squares += (value - point.mean) * (value - point.mean);
  if (values.size() > 1) point.deviation = std::sqrt(squares / (count - 1));
  return point;
}

/// "gradual warm-up, optim.name = \"lars\""
std::string line_of(size_t run, const ComparedRun& of,
                    const std::vector<KeyDifference>& differences) {
  std::string name = of.batch.warmup;
  for (const auto& difference : differences) {
    if (!shapes_a_line(difference.key)) continue;
    const auto& value = difference.values[run];
    name += ", " + difference.key + (value ? " = " + *value : " not there");
  }
  return name;
}

std::vector<std::string> other_keys(const std::vector<KeyDifference>& differences,
                                    const ComparedRun& run) {
  std::vector<std::string> keys;
  for (const auto& difference : differences) {
    if (!shapes_a_line(difference.key) && !is_expected(difference.key, run)) {
      keys.push_back(difference.key);
    }
  }
  return keys;
}

// By this number.
std::optional<BatchFigure> figure_by(const NumberStyle& style, const std::vector<ComparedRun>& runs,
                                     const std::vector<Curves>& curves) {
  const ComparedRun& first = runs.front();
  const auto differences = key_differences(runs);
  // By line and batch.
  std::map<std::string, std::map<double, std::vector<std::pair<size_t, double>>>> lines;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto value = value_at_end(curves[i], style);
    if (!value || runs[i].batch.size <= 0) continue;
    if (runs[i].task != first.task || runs[i].batch.unit != first.batch.unit) return std::nullopt;
    lines[line_of(i, runs[i], differences)][runs[i].batch.size].emplace_back(i, *value);
  }
  const std::string heading = style.chart.empty() ? style.label : style.chart;
  BatchFigure figure{.title = style.error.empty() ? heading : style.error + " (%)",
                     .number = style.name,
                     .unit = first.batch.unit,
                     .decimals = style.error.empty() ? style.column_decimals : 2,
                     .lines = {},
                     .others = other_keys(differences, first)};
  size_t most = 0;
  for (const auto& [name, batches] : lines) {
    BatchLine line{.name = name, .points = {}};
    for (const auto& [batch, values] : batches) line.points.push_back(point_of(batch, values));
    most = std::max(most, line.points.size());
    figure.lines.push_back(std::move(line));
  }
  if (most < 2) return std::nullopt;
  return figure;
}

}  // namespace

std::optional<BatchFigure> batch_figure(const Comparison& comparison,
                                        const std::vector<Curves>& curves) {
  if (comparison.runs.empty()) return std::nullopt;
  const Display& display = comparison.runs.front().display;
  auto figure = figure_by(display.style(display.best_by), comparison.runs, curves);
  return figure ? figure : figure_by(display.style("loss"), comparison.runs, curves);
}

}  // namespace stretto::report
