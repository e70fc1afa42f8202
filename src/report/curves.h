#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/chart_math.h"
#include "report/metrics_log.h"

namespace stretto::report {

/// The curves of a run that both the charts and the key numbers of its page are made from; x is the
/// step. Values that are not finite are left out, and so are skipped updates, but for `loss_scale`,
/// which changes there.
struct Curves {
  std::vector<Point> train_loss, valid_loss, train_ppl, valid_ppl, lr, rate, grad_norm, bleu;
  std::vector<Point> noise_scale, batch_tokens;  ///< both in target tokens
  std::vector<Point> loss_scale;
  std::vector<Point> comm, comm_wait;  ///< milliseconds of an update
  int64_t last_step = 0;
  int64_t processes = 0;  ///< that the last event with a number of them speaks of; 0 for none
  int64_t skipped = 0;    ///< updates

  explicit Curves(const std::vector<MetricsEvent>& events);
};

/// The event's own, or exp(nll).
std::optional<double> perplexity(const MetricsEvent& event);

bool lower(const Point& a, const Point& b);
/// The last value of a noisy curve: the mean of its last tenth, at most 20 points. Not of none.
double recent(const std::vector<Point>& points);
double sum(const std::vector<Point>& points);
double median(const std::vector<Point>& points);

std::string short_number(double value);
std::string at_step(const Point& point);                  ///< "step 1,200"
std::string best_low(const std::vector<Point>& points);   ///< "best 1.234 at step 100"
std::string best_high(const std::vector<Point>& points);  ///< the same of scores: "best 38.2 at …"

}  // namespace stretto::report
