#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"

namespace stretto::report {
namespace {

using Events = std::vector<MetricsEvent>;
using Value = std::function<std::optional<double>(const MetricsEvent&)>;

bool is_skipped(const MetricsEvent& event) {
  return event.skipped.value_or(false);
}

enum class Skipped { kLeaveOut, kKeep };

std::vector<Point> points_of(const Events& events, const char* kind, const Value& value,
                             Skipped skipped = Skipped::kLeaveOut) {
  std::vector<Point> points;
  for (const MetricsEvent& event : events) {
    if (event.event != kind) continue;
    if (is_skipped(event) && skipped == Skipped::kLeaveOut) continue;
    const auto y = value(event);
    if (y && std::isfinite(*y)) points.push_back({static_cast<double>(event.step), *y});
  }
  return points;
}

std::optional<double> milliseconds(const std::optional<double>& seconds) {
  return seconds ? std::optional(1e3 * *seconds) : std::nullopt;
}

std::optional<double> as_double(const std::optional<int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

}  // namespace

Curves::Curves(const Events& events)
    : train_loss(points_of(events, "train", [](const auto& e) { return e.loss; })),
      valid_loss(points_of(events, "valid", [](const auto& e) { return e.loss; })),
      train_ppl(points_of(events, "train", perplexity)),
      valid_ppl(points_of(events, "valid", perplexity)),
      lr(points_of(events, "train", [](const auto& e) { return e.lr; })),
      rate(points_of(events, "train", [](const auto& e) { return e.tokens_per_second; })),
      grad_norm(points_of(events, "train", [](const auto& e) { return e.grad_norm; })),
      bleu(points_of(events, "valid", [](const auto& e) { return e.bleu; })),
      noise_scale(points_of(events, "train", [](const auto& e) { return e.noise_scale; })),
      batch_tokens(
          points_of(events, "train", [](const auto& e) { return as_double(e.target_tokens); })),
      loss_scale(points_of(
          events, "train", [](const auto& e) { return e.loss_scale; }, Skipped::kKeep)),
      comm(points_of(events, "train", [](const auto& e) { return milliseconds(e.comm_seconds); })),
      comm_wait(points_of(events, "train",
                          [](const auto& e) { return milliseconds(e.comm_wait_seconds); })) {
  for (const MetricsEvent& event : events) {
    last_step = std::max(last_step, event.step);
    processes = event.processes.value_or(processes);
    skipped += is_skipped(event) ? 1 : 0;
  }
}

std::optional<double> perplexity(const MetricsEvent& event) {
  if (event.ppl) return event.ppl;
  return event.nll ? std::optional(std::exp(*event.nll)) : std::nullopt;
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

std::string best_low(const std::vector<Point>& points) {
  if (points.empty()) return "";
  const Point best = *std::min_element(points.begin(), points.end(), lower);
  return "best " + short_number(best.y) + " at " + at_step(best);
}

std::string best_high(const std::vector<Point>& points) {
  if (points.empty()) return "";
  const Point best = *std::max_element(points.begin(), points.end(), lower);
  return "best " + fixed(best.y, 1) + " at " + at_step(best);
}

}  // namespace stretto::report
