#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/batch_figure.h"
#include "report/comparison_charts.h"
#include "report/comparison_page.h"

namespace stretto::report {
namespace {

using ComparisonJson = nlohmann::ordered_json;

constexpr int64_t kComparisonFormat = 1;
constexpr size_t kMostStoredPoints = 600;

ComparisonJson or_null(const std::optional<double>& value) {
  return value ? ComparisonJson(*value) : ComparisonJson(nullptr);
}

ComparisonJson json_of_best(const std::vector<BestNumber>& numbers, size_t run) {
  auto best = ComparisonJson::object();
  for (const BestNumber& number : numbers) {
    if (const auto& point = number.best[run]) {
      best[number.style.name] = {{"value", point->y}, {"step", static_cast<int64_t>(point->x)}};
    }
  }
  return best;
}

ComparisonJson json_of_compared(const ComparedRun& run, const Curves& curves, ComparisonJson best) {
  auto machine = ComparisonJson::object();
  for (const auto& [label, value] : run.machine) machine[label] = value;
  const auto rate = curves.rate.empty() ? std::nullopt : std::optional(median(curves.rate));
  return {{"name", run.name},
          {"folder", run.folder},
          {"task", run.task},
          {"status", run.status},
          {"step", curves.last_step},
          {"seconds", or_null(trained_seconds(run))},
          {"rate", or_null(rate)},
          {"rate_unit", run.display.rate.unit + "/s"},
          {"machine", std::move(machine)},
          {"best", std::move(best)}};
}

ComparisonJson json_of_compared(const KeyDifference& difference) {
  auto values = ComparisonJson::array();
  for (const auto& value : difference.values) {
    values.push_back(value ? ComparisonJson(*value) : ComparisonJson(nullptr));
  }
  return {{"key", difference.key}, {"values", std::move(values)}};
}

ComparisonJson json_of_compared(const Chart& chart, const std::string& over,
                                const std::vector<size_t>& runs) {
  auto curves = ComparisonJson::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    auto points = ComparisonJson::array();
    for (const Point& point : downsample(chart.series[i].points, kMostStoredPoints)) {
      points.push_back({point.x, point.y});
    }
    curves.push_back({{"run", runs[i]}, {"points", std::move(points)}});
  }
  return {{"title", chart.title},
          {"over", over},
          {"unit", chart.x_unit.empty() ? "steps" : chart.x_unit},
          {"curves", std::move(curves)}};
}

ComparisonJson json_of_compared(const BatchFigure& figure) {
  auto lines = ComparisonJson::array();
  for (const auto& line : figure.lines) {
    auto points = ComparisonJson::array();
    for (const auto& point : line.points) {
      points.push_back({{"batch", static_cast<int64_t>(point.batch)},
                        {"mean", point.mean},
                        {"deviation", point.deviation},
                        {"runs", point.runs}});
    }
    lines.push_back({{"name", line.name}, {"points", std::move(points)}});
  }
  return {{"title", figure.title},
          {"number", figure.number},
          {"unit", figure.unit},
          {"lines", std::move(lines)},
          {"others", figure.others}};
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  const std::vector<Curves> curves = curves_of(comparison.runs);
  const auto numbers = best_numbers(comparison.runs, curves);
  auto runs = ComparisonJson::array(), left_out = ComparisonJson::array(),
       differences = ComparisonJson::array(), charts = ComparisonJson::array();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    runs.push_back(json_of_compared(comparison.runs[i], curves[i], json_of_best(numbers, i)));
  }
  for (const LeftOutRun& run : comparison.left_out) {
    left_out.push_back({{"folder", run.folder}, {"why", run.why}});
  }
  for (const auto& difference : key_differences(comparison.runs)) {
    differences.push_back(json_of_compared(difference));
  }
  for (const ComparedCharts& view : compared_charts(comparison, curves)) {
    for (size_t i = 0; i < view.charts.size(); ++i) {
      charts.push_back(json_of_compared(view.charts[i], view.over, view.runs[i]));
    }
  }
  const auto figure = batch_figure(comparison, curves);
  return ComparisonJson{{"format", kComparisonFormat},
                        {"runs", std::move(runs)},
                        {"left_out", std::move(left_out)},
                        {"differences", std::move(differences)},
                        {"charts", std::move(charts)},
                        {"batches", figure ? json_of_compared(*figure) : ComparisonJson(nullptr)}}
             .dump(-1, ' ', false, ComparisonJson::error_handler_t::replace) +
         "\n";
}

bool is_comparison_json(const std::filesystem::path& path) {
  constexpr std::string_view kBegin = "{\"format\":", kBehindFormat = ",\"runs\":[{\"name\":";
  std::array<char, 64> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  std::string_view text(begin.data(), static_cast<size_t>(file.gcount()));
  if (!text.starts_with(kBegin)) return false;
  text.remove_prefix(kBegin.size());
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto digits = std::find_if_not(text.begin(), text.end(), is_digit) - text.begin();
  return digits > 0 && text.substr(static_cast<size_t>(digits)).starts_with(kBehindFormat);
}

}  // namespace stretto::report
