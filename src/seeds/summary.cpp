#include "seeds/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "report/utf8.h"

namespace stretto::seeds {
namespace {

constexpr const char* kUnknown = "-";

using WhichValidation = std::optional<ValidationScores> RunScores::*;

NamedSpreads spreads_at(const std::vector<RunScores>& runs, WhichValidation which) {
  std::vector<std::pair<std::string, std::vector<double>>> values;
  for (const auto& run : runs) {
    if (!(run.*which)) continue;
    for (const auto& [name, value] : (run.*which)->scores) {
      const std::string& wanted = name;
      auto found = std::find_if(values.begin(), values.end(),
                                [&](const auto& entry) { return entry.first == wanted; });
      if (found == values.end()) found = values.insert(values.end(), {name, {}});
      found->second.push_back(value);
    }
  }
  NamedSpreads spreads;
  for (const auto& [name, numbers] : values) spreads.emplace_back(name, *spread_of(numbers));
  return spreads;
}

const Spread* find_spread(const NamedSpreads& spreads, const std::string& name) {
  const auto found = std::find_if(spreads.begin(), spreads.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == spreads.end() ? nullptr : &found->second;
}

using Cells = std::vector<std::string>;

void add_spread(Cells& cells, const Spread* spread, int decimals) {
  cells.push_back(spread == nullptr ? kUnknown : fixed(spread->mean, decimals));
  const bool known = spread != nullptr && spread->deviation;
  cells.push_back(known ? fixed(*spread->deviation, decimals) : kUnknown);
}

// The first column to the left, numbers to the right.
std::vector<std::string> aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], report::count_code_points(row[i]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - report::count_code_points(row[i]), ' ');
      line += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::optional<Spread> spread_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  Spread spread{.mean = mean, .deviation = {}, .runs = std::ssize(values)};
  if (values.size() == 1) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

Summary summarise(const std::vector<RunScores>& runs) {
  std::vector<double> seconds;
  for (const auto& run : runs) {
    if (run.seconds) seconds.push_back(*run.seconds);
  }
  return {.best = spreads_at(runs, &RunScores::best),
          .last = spreads_at(runs, &RunScores::last),
          .seconds = spread_of(seconds)};
}

std::vector<std::string> summary_lines(const Summary& summary, const report::Display& display) {
  std::vector<Cells> rows;
  for (const auto& [name, last] : summary.last) {
    const auto style = display.style(name);
    Cells row{style.label};
    add_spread(row, find_spread(summary.best, name), style.decimals);
    add_spread(row, &last, style.decimals);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  rows.insert(rows.begin(), {"", "best: mean", "deviation", "last: mean", "deviation"});
  auto lines = aligned(rows);
  if (summary.seconds) {
    const auto& [mean, deviation, runs] = *summary.seconds;
    lines.push_back("time: mean " + human_duration(mean) +
                    (deviation ? ", deviation " + human_duration(*deviation) : ""));
  }
  return lines;
}

}  // namespace stretto::seeds
