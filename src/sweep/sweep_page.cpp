#include "sweep/sweep_page.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "report/chart.h"
#include "report/html_text.h"
#include "report/page.h"
#include "sweep/pareto.h"

namespace stretto::sweep {
namespace {

constexpr double kMegabyte = 1e6;
constexpr size_t kInks = 8;
// Those behind the three of page_style.h, which are read on light pages and on dark ones.
constexpr const char* kStyle =
    ".ink4{--c:#9b59d0}.ink5{--c:#d6457c}.ink6{--c:#1597a5}.ink7{--c:#8a9a1b}.ink8{--c:#a1704f}"
    ".front{--c:var(--warn)}.wide{grid-template-columns:minmax(0,1fr)}"
    ".list .text{text-align:left}";

double megabytes(const PointResult& result) {
  return static_cast<double>(result.bytes) / kMegabyte;
}

/// The points on the front of size, and on that of time.
struct Fronts {
  std::vector<size_t> by_size, by_time;  ///< by rising cost

  std::string mark(size_t result) const {
    const bool small = std::ranges::count(by_size, result) > 0;
    const bool fast = std::ranges::count(by_time, result) > 0;
    if (small && fast) return "size, time";
    return small ? "size" : fast ? "time" : "";
  }
};

Fronts fronts_of(const SweepView& view) {
  std::vector<Trade> sizes, times;
  std::vector<size_t> timed;
  for (size_t i = 0; i < view.results.size(); ++i) {
    const auto& result = view.results[i];
    sizes.push_back({megabytes(result), result.score});
    if (const auto latency = result.latency()) {
      times.push_back({*latency, result.score});
      timed.push_back(i);
    }
  }
  Fronts fronts;
  fronts.by_size = pareto_front(sizes, view.metric.higher_is_better);
  for (const size_t one : pareto_front(times, view.metric.higher_is_better)) {
    fronts.by_time.push_back(timed[one]);
  }
  return fronts;
}

std::vector<std::string> columns_of(const SweepView& view) {
  return {"point",          "bits",     "zeros",         "MB",          "bits a weight",
          view.metric.name, "a second", "ms a thousand", "Pareto front"};
}

std::vector<std::string> cells_of(const PointResult& result, const std::string& mark) {
  const auto latency = result.latency();
  return {result.point.name,
          std::to_string(result.point.bits),
          fixed(result.zeros, 3),
          fixed(megabytes(result), 3),
          fixed(result.bits_per_weight, 2),
          fixed(result.score, 4),
          result.rate ? fixed(*result.rate, 1) + " " + result.unit : "–",
          latency ? fixed(*latency, 2) : "–",
          mark};
}

// Code points, since a dash has three bytes.
size_t shown_width(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string row_text(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line += std::string(widths[i] - shown_width(cells[i]) + 2, ' ');
  }
  return trim(line) + "\n";
}

std::string chart_summary(const SweepView& view, const std::string& unit) {
  return unit + (view.metric.higher_is_better ? "; higher is better" : "; lower is better");
}

// A curve goes through the bits of one run with one share of zeros: through all points of a run it
// would go up and down.
std::string curve_of(const PointResult& result) {
  if (result.point.sparsity <= 0) return result.run;
  return result.run + ", " + percent_text(result.point.sparsity) + " zeros";
}

using Cost = std::optional<double> (*)(const PointResult&);

report::Chart chart_of(const SweepView& view, const std::vector<size_t>& front, Cost cost,
                       const std::string& title, const std::string& unit) {
  report::Chart chart;
  chart.title = title;
  chart.summary = chart_summary(view, unit);
  chart.wide = true;
  chart.x_unit = unit;
  std::vector<std::string> curves;  // in the order in which their runs were named
  for (const auto& result : view.results) {
    const std::string name = curve_of(result);
    if (std::ranges::count(curves, name) == 0) curves.push_back(name);
  }
  for (size_t i = 0; i < curves.size(); ++i) {
    report::Series series;
    series.name = curves[i];
    series.css = "ink" + std::to_string(i % kInks + 1);
    series.style = report::LineStyle::kDots;
    for (const auto& result : view.results) {
      const auto x = cost(result);
      if (curve_of(result) == curves[i] && x) series.points.push_back({*x, result.score});
    }
    std::ranges::stable_sort(series.points, {}, &report::Point::x);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  report::Series best;
  best.name = "Pareto front";
  best.css = "front";
  best.style = report::LineStyle::kSteps;
  for (const size_t one : front) {
    best.points.push_back({cost(view.results[one]).value_or(0), view.results[one].score});
  }
  if (!best.points.empty()) chart.series.push_back(std::move(best));
  return chart;
}

std::optional<double> size_cost(const PointResult& result) {
  return megabytes(result);
}
std::optional<double> time_cost(const PointResult& result) {
  return result.latency();
}

std::string html_table(const SweepView& view, const Fronts& fronts) {
  std::string out =
      "<section><h2>Points</h2><div class=\"card table\"><table class=\"list\"><thead><tr>";
  const auto columns = columns_of(view);
  for (size_t i = 0; i < columns.size(); ++i) {
    out += std::string(i == 0 ? "<th class=\"text\">" : "<th>") + report::escape_html(columns[i]) +
           "</th>";
  }
  out += "</tr></thead><tbody>";
  for (size_t i = 0; i < view.results.size(); ++i) {
    const auto cells = cells_of(view.results[i], fronts.mark(i));
    out += "<tr>";
    for (size_t j = 0; j < cells.size(); ++j) {
      out += std::string(j == 0 ? "<td class=\"text\">" : "<td>") +
             report::escape_html(cells[j], report::kMaxCell) + "</td>";
    }
    out += "</tr>";
  }
  return out +
         "</tbody></table></div><p class=\"note\">A point is on the Pareto front of size or time "
         "where no other one scores as well for as little. MB are those of the model file, 10<sup>"
         "6</sup> bytes. Zeros are stored like other weights.</p></section>\n";
}

std::string status_of(const SweepView& view) {
  if (view.results.size() == view.num_points) return "finished";
  if (!view.has_ended) return "running";
  if (view.failed.empty()) return "stopped";
  return counted(static_cast<int64_t>(view.failed.size()), "point") + " failed";
}

std::string failures_text(const SweepView& view) {
  if (view.failed.empty()) return "";
  return "<p class=\"note\">Without a result: " +
         report::escape_html(join(view.failed, ", "), report::kMaxCell) +
         ". The folder `logs` has what their processes said.</p>\n";
}

std::string tiles_of(const SweepView& view, const Fronts& fronts) {
  std::set<std::string> runs, processors;
  for (const auto& result : view.results) {
    runs.insert(result.run);
    if (!result.processor.empty()) processors.insert(result.processor);
  }
  std::string out = "<dl class=\"tiles card\">" +
                    report::render_tile("Points", std::to_string(view.results.size()),
                                        "of " + std::to_string(view.num_points)) +
                    report::render_tile("Runs", std::to_string(runs.size()), "") +
                    report::render_tile("On the front of size",
                                        std::to_string(fronts.by_size.size()), view.metric.name);
  const std::vector<std::string> names(processors.begin(), processors.end());
  if (!names.empty()) out += report::render_tile("Timed on", join(names, ", "), "");
  return out + "</dl>\n";
}

}  // namespace

std::string sweep_table(const SweepView& view) {
  const Fronts fronts = fronts_of(view);
  std::vector<std::vector<std::string>> rows{columns_of(view)};
  for (size_t i = 0; i < view.results.size(); ++i) {
    rows.push_back(cells_of(view.results[i], fronts.mark(i)));
  }
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) text += row_text(row, widths);
  return text;
}

std::string sweep_tsv(const SweepView& view) {
  const Fronts fronts = fronts_of(view);
  std::string text = "point\trun\tbits\tsparsity\tzeros\tbytes\tbits_per_weight\t" +
                     view.metric.name + "\trate\tunit\tfront\n";
  for (size_t i = 0; i < view.results.size(); ++i) {
    const auto& result = view.results[i];
    const std::vector<std::string> cells{result.point.name,
                                         result.run,
                                         std::to_string(result.point.bits),
                                         shortest(result.point.sparsity),
                                         shortest(result.zeros),
                                         std::to_string(result.bytes),
                                         shortest(result.bits_per_weight),
                                         shortest(result.score),
                                         result.rate ? shortest(*result.rate) : "",
                                         result.unit,
                                         fronts.mark(i)};
    text += join(cells, "\t") + "\n";
  }
  return text;
}

std::string render_sweep(const SweepView& view) {
  const Fronts fronts = fronts_of(view);
  report::Page page;
  page.title = view.metric.name + " of compressed models";
  page.kind = "Stretto compression";
  page.over = "Compressed models";
  page.status = status_of(view);
  page.footer =
      "Written by Stretto into the folder of the grid. Everything on this page is in this one "
      "file; sweep.tsv has the numbers.";
  page.style = kStyle;
  std::string charts = report::render_chart(chart_of(
      view, fronts.by_size, &size_cost, view.metric.name + " against the size of the model", "MB"));
  if (!fronts.by_time.empty()) {
    charts += report::render_chart(chart_of(view, fronts.by_time, &time_cost,
                                            view.metric.name + " against measured time",
                                            "ms a thousand " + view.results.front().unit));
  }
  return report::render_page(page, tiles_of(view, fronts),
                             "<div class=\"charts wide\">" + charts + "</div>" +
                                 html_table(view, fronts) + failures_text(view));
}

}  // namespace stretto::sweep
