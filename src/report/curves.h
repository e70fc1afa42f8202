#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/chart_math.h"
#include "report/display.h"
#include "report/metrics_log.h"

namespace stretto::report {

/// One of a run's numbers over its steps.
struct NumberCurves {
  std::vector<Point> train, valid;
};

/// The curves of a run that both the charts and the key numbers of its page are made from; x is the
/// step. Values that are not finite are left out. So are skipped updates, and those between the
/// scheduled ones (MetricsEvent::unscheduled), but for `loss_scale`, which changes there: a warning
/// adds no point to a curve.
struct Curves {
  std::vector<NumberStyle> styles;              ///< of all numbers that may be shown, in order
  std::map<std::string, NumberCurves> numbers;  ///< by name; one for each style
  std::vector<Point> lr, rate, grad_norm;
  std::vector<Point> noise_scale, batch;  ///< both in Display::loss_unit
  std::vector<Point> loss_scale;
  std::vector<Point> comm, comm_wait;  ///< milliseconds of an update
  int64_t last_step = 0;
  int64_t processes = 0;  ///< that the last event with a number of them speaks of; 0 for none
  int64_t skipped = 0;    ///< updates
  int64_t best_from = 0;  ///< first_comparable_step()

  Curves(const std::vector<MetricsEvent>& events, const Display& display);

  const NumberCurves& of(const NumberStyle& style) const { return numbers.at(style.name); }
  bool has_validations() const { return !numbers.at("loss").valid.empty(); }
};

/// The step of the first validation with the greatest share of pruned weights: those before it are
/// of another model (compress.prune), and none of them is the best. 0 = nothing is pruned.
int64_t first_comparable_step(const std::vector<MetricsEvent>& events);

/// The event's own, or what NumberStyle::exponential_of makes of another.
std::optional<double> value_of(const MetricsEvent& event, const NumberStyle& style);

bool lower(const Point& a, const Point& b);
/// The last value of a noisy curve: the mean of its last tenth, at most 20 points. Not of none.
double recent(const std::vector<Point>& points);
double sum(const std::vector<Point>& points);
double median(const std::vector<Point>& points);

std::string short_number(double value);
std::string at_step(const Point& point);  ///< "step 1,200"
/// "best 38.2 at step 100": a score with its decimals, a loss in few digits. Empty of no points.
/// @param from  first_comparable_step()
std::string best_text(const std::vector<Point>& points, const NumberStyle& style, int64_t from = 0);

}  // namespace stretto::report
