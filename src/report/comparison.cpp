#include "report/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"

namespace stretto::report {
namespace {

using KeyList = std::vector<std::pair<std::string, std::string>>;

const std::string* value_of_key(const std::map<std::string, std::string>& keys,
                                const std::string& key) {
  const auto found = keys.find(key);
  return found == keys.end() ? nullptr : &found->second;
}

// The keys of all runs. Those that only a later run has stand behind its key before them, so that
// the sections of a family stay together.
std::vector<std::string> all_keys(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> all;
  for (const ComparedRun& run : runs) {
    size_t place = 0;
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < all.size(); ++i) places[all[i]] = i;
    std::vector<std::vector<std::string>> behind(all.size() + 1);
    for (const auto& [key, value] : run.keys) {
      const auto found = places.find(key);
      if (found == places.end()) {
        behind[place].push_back(key);
      } else {
        place = found->second + 1;
      }
    }
    std::vector<std::string> joined = behind[0];
    for (size_t i = 0; i < all.size(); ++i) {
      joined.push_back(all[i]);
      joined.insert(joined.end(), behind[i + 1].begin(), behind[i + 1].end());
    }
    all = std::move(joined);
  }
  return all;
}

// Each style once by its name, in the order of the runs.
std::vector<NumberStyle> all_styles(const std::vector<Curves>& curves) {
  std::vector<NumberStyle> styles;
  for (const Curves& run : curves) {
    for (const NumberStyle& style : run.styles) {
      const bool known = std::ranges::any_of(
          styles, [&](const NumberStyle& other) { return other.name == style.name; });
      if (!known) styles.push_back(style);
    }
  }
  return styles;
}

std::optional<Point> best_validation(const Curves& curves, const NumberStyle& style) {
  const auto found = curves.numbers.find(style.name);
  if (found == curves.numbers.end()) return std::nullopt;
  std::optional<Point> best;
  for (const Point& point : found->second.valid) {
    if (point.x <= 0 || point.x < static_cast<double>(curves.best_from)) continue;
    if (!best || (style.higher_is_better ? point.y > best->y : point.y < best->y)) best = point;
  }
  return best;
}

// Runs with and without label smoothing head the column of their loss differently.
std::string common_title(const NumberStyle& style, const std::vector<Curves>& curves) {
  for (const Curves& run : curves) {
    for (const NumberStyle& other : run.styles) {
      if (other.name != style.name || other.column == style.column) continue;
      return style.chart.empty() ? style.label : style.chart;
    }
  }
  return style.column;
}

std::vector<bool> winners_of(const BestNumber& number, const std::vector<ComparedRun>& runs) {
  std::vector<bool> measured;
  for (const auto& point : number.best) measured.push_back(point.has_value());
  if (!are_comparable(runs, measured)) return std::vector<bool>(runs.size(), false);
  std::optional<double> best;
  for (const auto& point : number.best) {
    if (!point) continue;
    const bool better =
        !best || (number.style.higher_is_better ? point->y > *best : point->y < *best);
    if (better) best = point->y;
  }
  std::vector<bool> winners;
  for (const auto& point : number.best) winners.push_back(point && point->y == best);
  return winners;
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<std::string>& titles,
                                        const std::vector<std::string>& folders) {
  std::vector<std::string> names = titles;
  for (size_t i = 0; i < titles.size(); ++i) {
    const bool is_shared = std::ranges::count(titles, titles[i]) > 1;
    if (is_shared || titles[i].empty()) names[i] = folders[i];
  }
  // One run's folder may be another's title.
  const bool are_distinct = std::ranges::all_of(
      names, [&](const auto& name) { return std::ranges::count(names, name) == 1; });
  return are_distinct ? names : folders;
}

bool are_comparable(const std::vector<ComparedRun>& runs, const std::vector<bool>& measured) {
  std::vector<std::string> tasks;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (measured[i]) tasks.push_back(runs[i].task);
  }
  return tasks.size() > 1 &&
         std::ranges::all_of(tasks, [&](const auto& task) { return task == tasks.front(); });
}

std::vector<KeyDifference> key_differences(const std::vector<ComparedRun>& runs) {
  std::vector<std::map<std::string, std::string>> keys;
  for (const ComparedRun& run : runs) keys.emplace_back(run.keys.begin(), run.keys.end());
  std::vector<KeyDifference> differences;
  for (const std::string& key : all_keys(runs)) {
    KeyDifference difference{.key = key, .values = {}};
    for (const auto& of_run : keys) {
      const std::string* value = value_of_key(of_run, key);
      difference.values.push_back(value == nullptr ? std::nullopt : std::optional(*value));
    }
    const auto& values = difference.values;
    const bool differs =
        std::ranges::any_of(values, [&](const auto& value) { return value != values.front(); });
    if (differs) differences.push_back(std::move(difference));
  }
  return differences;
}

std::vector<BestNumber> best_numbers(const std::vector<ComparedRun>& runs,
                                     const std::vector<Curves>& curves) {
  std::vector<BestNumber> numbers;
  for (const NumberStyle& style : all_styles(curves)) {
    if (style.column.empty()) continue;
    BestNumber number{
        .style = style, .title = common_title(style, curves), .best = {}, .winners = {}};
    for (size_t i = 0; i < runs.size(); ++i)
      number.best.push_back(best_validation(curves[i], style));
    const bool is_measured =
        std::ranges::any_of(number.best, [](const auto& best) { return best.has_value(); });
    if (!is_measured) continue;
    number.winners = winners_of(number, runs);
    numbers.push_back(std::move(number));
  }
  return numbers;
}

std::vector<Curves> curves_of(const std::vector<ComparedRun>& runs) {
  std::vector<Curves> curves;
  for (const ComparedRun& run : runs) curves.emplace_back(run.events, run.display);
  return curves;
}

std::optional<double> trained_seconds(const ComparedRun& run) {
  std::optional<double> seconds;
  for (const MetricsEvent& event : run.events) {
    if (event.seconds && std::isfinite(*event.seconds)) {
      seconds = std::max(seconds.value_or(0), *event.seconds);
    }
  }
  return seconds;
}

std::optional<double> data_wait_share(const ComparedRun& run) {
  double waited = 0, whole = 0;
  for (const MetricsEvent& event : run.events) {
    const auto count = event.number(run.display.rate.batch),
               rate = event.number(run.display.rate.key);
    if (event.event != "train" || !event.data_wait_seconds || !count || !rate) continue;
    const double seconds = *count / *rate;
    if (!(seconds > 0) || !std::isfinite(seconds) || !std::isfinite(*event.data_wait_seconds))
      continue;
    waited += *event.data_wait_seconds;
    whole += seconds;
  }
  return whole > 0 ? std::optional(std::clamp(waited / whole, 0.0, 1.0)) : std::nullopt;
}

std::string machine_text(const ComparedRun& run) {
  std::vector<std::string> parts;
  const auto add = [&](const char* label, const char* noun) {
    for (const auto& [name, value] : run.machine) {
      if (name == label && !value.empty()) parts.push_back(value + noun);
    }
  };
  add("processor", "");
  add("device", "");
  const bool is_one =
      std::ranges::count(run.machine, std::pair<std::string, std::string>{"threads", "1"}) > 0;
  add("threads", is_one ? " thread" : " threads");
  add("precision", "");
  add("processes", "");
  return join(parts, " · ");
}

}  // namespace stretto::report
