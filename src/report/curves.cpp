#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text.h"

namespace stretto::report {
namespace {

using Events = std::vector<MetricsEvent>;
using Value = std::function<std::optional<double>(const MetricsEvent&)>;

constexpr size_t kMostUnknown = 24;  // a page of a damaged file must not grow without end

bool is_skipped(const MetricsEvent& event) {
  return event.skipped.value_or(false);
}

// What stands between the points of the curves: at a warning the gradient norm is never an ordinary
// one, and a curve of a short run would consist of them.
bool is_between(const MetricsEvent& event) {
  return is_skipped(event) || event.unscheduled.value_or(false);
}

enum class Between { kLeaveOut, kKeep };

std::vector<Point> points_of(const Events& events, const char* kind, const Value& value,
                             Between between = Between::kLeaveOut) {
  std::vector<Point> points;
  for (const MetricsEvent& event : events) {
    if (event.event != kind) continue;
    if (is_between(event) && between == Between::kLeaveOut) continue;
    const auto y = value(event);
    if (y && std::isfinite(*y)) points.push_back({static_cast<double>(event.step), *y});
  }
  return points;
}

std::optional<double> milliseconds(const std::optional<double>& seconds) {
  return seconds ? std::optional(1e3 * *seconds) : std::nullopt;
}

/// The first names of numbers that no row tells how to show. Counts are not shown.
std::vector<std::string> unknown_names(const Events& events, const Display& display) {
  std::set<std::string> names;
  for (const MetricsEvent& event : events) {
    for (const auto* list : {&event.measures, &event.scores}) {
      for (const auto& number : *list) {
        if (names.size() < kMostUnknown && !display.knows(number.name)) names.insert(number.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

Curves::Curves(const Events& events, const Display& display)
    : styles(styles_of(display, unknown_names(events, display))),
      lr(points_of(events, "train", [](const auto& e) { return e.lr; })),
      rate(points_of(events, "train", [&](const auto& e) { return e.number(display.rate.key); })),
      grad_norm(points_of(events, "train", [](const auto& e) { return e.grad_norm; })),
      noise_scale(points_of(events, "train", [](const auto& e) { return e.noise_scale; })),
      batch(points_of(events, "train",
                      [&](const auto& e) { return e.number(display.loss_unit.count); })),
      loss_scale(points_of(
          events, "train", [](const auto& e) { return e.loss_scale; }, Between::kKeep)),
      comm(points_of(events, "train", [](const auto& e) { return milliseconds(e.comm_seconds); })),
      comm_wait(points_of(events, "train",
                          [](const auto& e) { return milliseconds(e.comm_wait_seconds); })) {
  for (NumberStyle& style : styles) {
    const auto value = [&](const MetricsEvent& event) { return value_of(event, style); };
    auto& curves = numbers[style.name];
    curves = {points_of(events, "train", value), points_of(events, "valid", value)};
    if (!display.knows(style.name)) style.of_validation = curves.train.empty();
  }
  for (const MetricsEvent& event : events) {
    last_step = std::max(last_step, event.step);
    processes = event.processes.value_or(processes);
    skipped += is_skipped(event) ? 1 : 0;
  }
  best_from = first_comparable_step(events);
}

int64_t first_comparable_step(const Events& events) {
  int64_t step = 0;
  double most = 0;
  for (const MetricsEvent& event : events) {
    if (event.event != "valid" || event.sparsity.value_or(0) <= most) continue;
    most = *event.sparsity;
    step = event.step;
  }
  return step;
}

std::optional<double> value_of(const MetricsEvent& event, const NumberStyle& style) {
  const auto own = event.number(style.name);
  if (own || style.exponential_of.empty()) return own;
  const auto exponent = event.number(style.exponential_of);
  return exponent ? std::optional(std::exp(*exponent)) : std::nullopt;
}

bool lower(const Point& a, const Point& b) {
  return a.y < b.y;
}

double recent(const std::vector<Point>& points) {
  const size_t count = std::clamp<size_t>(points.size() / 10, 1, 20);
  double sum = 0;
  for (size_t i = points.size() - count; i < points.size(); ++i) sum += points[i].y;
  return sum / static_cast<double>(count);
}

double sum(const std::vector<Point>& points) {
  double sum = 0;
  for (const Point& point : points) sum += point.y;
  return sum;
}

double median(const std::vector<Point>& points) {
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.y);
  return quantile(std::move(values), 0.5);
}

std::string short_number(double value) {
  if (std::abs(value) >= 1000 || (value != 0 && std::abs(value) < 0.01)) return tick_label(value);
  return fixed(value, std::abs(value) < 10 ? 3 : std::abs(value) < 100 ? 2 : 1);
}

std::string at_step(const Point& point) {
  return "step " + with_thousands(std::llround(point.x));
}

std::string best_text(const std::vector<Point>& all, const NumberStyle& style, int64_t from) {
  std::vector<Point> points;  // a validation before the first update is never the best
  std::copy_if(all.begin(), all.end(), std::back_inserter(points), [&](const Point& point) {
    return point.x > 0 && point.x >= static_cast<double>(from);
  });
  if (points.empty()) return "";
  const Point best = style.higher_is_better
                         ? *std::max_element(points.begin(), points.end(), lower)
                         : *std::min_element(points.begin(), points.end(), lower);
  const bool is_score = style.higher_is_better || style.of_validation;
  return "best " + (is_score ? fixed(best.y, style.decimals) : short_number(best.y)) + " at " +
         at_step(best);
}

}  // namespace stretto::report
