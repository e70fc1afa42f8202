#include "report/report_charts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/chart.h"

namespace stretto::report {
namespace {

/// At half the noise scale a run takes 3 times the fewest updates and 1.5 times the fewest tokens,
/// at twice 1.5 and 3 times (McCandlish et al. 2018, section 2.3).
constexpr double kCriticalBand = 2;

Series train_series(const std::vector<Point>& points) {
  return {"training", "ink1", LineStyle::kRawAndSmooth, points};
}
Series valid_series(const std::vector<Point>& points) {
  return {"validation", "ink2", LineStyle::kDots, points};
}

std::string last_value(const std::vector<Point>& points) {
  return points.empty() ? "" : "now " + short_number(recent(points));
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * std::clamp(share, 0.0, 1.0))) + "%";
}

Chart loss_chart(const Curves& curves) {
  const bool has_valid = !curves.valid_loss.empty();
  return {.title = "Loss",
          .summary = has_valid ? best_low(curves.valid_loss) : last_value(curves.train_loss),
          .series = {train_series(curves.train_loss), valid_series(curves.valid_loss)}};
}

Chart perplexity_chart(const Curves& curves) {
  const bool has_valid = !curves.valid_loss.empty();
  return {.title = "Perplexity",
          .summary = has_valid ? best_low(curves.valid_ppl) : last_value(curves.train_ppl),
          .logarithmic = true,
          .series = {train_series(curves.train_ppl), valid_series(curves.valid_ppl)}};
}

Chart bleu_chart(const Curves& curves) {
  return {.title = "BLEU",
          .summary = best_high(curves.bleu),
          .from_zero = true,
          .series = {{"BLEU", "ink2", LineStyle::kDots, curves.bleu}}};
}

Chart rate_chart(const Curves& curves) {
  const auto text = [&] { return with_thousands(std::llround(median(curves.rate))); };
  return {.title = "Tokens per second",
          .summary = curves.rate.empty() ? "" : "median " + text(),
          .from_zero = true,
          .series = {{"tokens/s", "ink3", LineStyle::kRawAndSmooth, curves.rate}}};
}

/// Updates between two events are not in the file, so this is not the schedule's own peak.
Chart learning_rate_chart(const Curves& curves) {
  std::string summary;
  if (!curves.lr.empty()) {
    const Point highest = *std::max_element(curves.lr.begin(), curves.lr.end(), lower);
    summary = "highest logged " + tick_label(highest.y) + " at " + at_step(highest);
  }
  return {.title = "Learning rate",
          .summary = summary,
          .from_zero = true,
          .series = {{"learning rate", "ink1", LineStyle::kLine, curves.lr}}};
}

Chart gradient_chart(const Curves& curves) {
  return {.title = "Gradient norm",
          .summary = last_value(curves.grad_norm),
          .series = {{"gradient norm", "ink1", LineStyle::kRawAndSmooth, curves.grad_norm}}};
}

/// The noise scale is an estimate: two digits of it.
std::string about(double tokens) {
  if (!(tokens > 0)) return "0";
  const double power = std::pow(10.0, std::floor(std::log10(tokens)) - 1);
  return tick_label(std::round(tokens / power) * power);
}

std::string noise_summary(const Curves& curves) {
  const double scale = recent(curves.noise_scale);
  const std::string text = "about " + about(scale);
  if (curves.batch_tokens.empty() || !(scale > 0)) return text;
  const double batch = recent(curves.batch_tokens);
  const char* where = batch < scale / kCriticalBand   ? "below"
                      : batch > scale * kCriticalBand ? "above"
                                                      : "in";
  return text + "; batch " + where + " the band";
}

Chart noise_chart(const Curves& curves) {
  Series scale{"noise scale", "ink1", LineStyle::kRawAndSmooth, curves.noise_scale};
  scale.band = kCriticalBand;
  return {.title = "Noise scale, tokens",
          .summary = noise_summary(curves),
          .logarithmic = true,
          .series = {scale, {"batch", "ink2", LineStyle::kRawAndSmooth, curves.batch_tokens}}};
}

/// Under all charts: in its card it would leave the one beside it with an empty space.
constexpr const char* kNoiseNote =
    "<p class=\"note\">Noise scale, shaded: half to twice the gradient noise scale. A batch below "
    "the band wastes little, and a larger one would save updates. Above it, more tokens in an "
    "update hardly help.</p>\n";

Chart loss_scale_chart(const Curves& curves) {
  const double now = curves.loss_scale.back().y;
  std::string summary =
      "now " + (now >= 1 && now < 1e15 ? with_thousands(std::llround(now)) : tick_label(now));
  if (curves.skipped > 0) {
    summary += "; " + counted(curves.skipped, "update") + " skipped";
  }
  return {.title = "Loss scale",
          .summary = summary,
          .logarithmic = true,
          .series = {{"loss scale", "ink1", LineStyle::kSteps, curves.loss_scale}}};
}

/// Of the whole run: long updates count by their length.
std::string hidden_text(const Curves& curves) {
  const double hidden = 1 - sum(curves.comm_wait) / sum(curves.comm);
  return std::isfinite(hidden) && !curves.comm_wait.empty() ? percent(hidden) + " hidden" : "";
}

Chart communication_chart(const Curves& curves) {
  std::string summary = hidden_text(curves);
  if (curves.processes > 1) {
    const std::string processes = with_thousands(curves.processes) + " processes";
    summary = summary.empty() ? processes : processes + "; " + summary;
  }
  return {.title = "Communication, ms",
          .summary = summary,
          .from_zero = true,
          .series = {{"under way", "ink1", LineStyle::kRawAndSmooth, curves.comm},
                     {"waited for", "ink2", LineStyle::kRawAndSmooth, curves.comm_wait}}};
}

bool changes(const std::vector<Point>& points) {
  const auto [least, greatest] = std::minmax_element(points.begin(), points.end(), lower);
  return !points.empty() && least->y < greatest->y;
}

}  // namespace

std::string render_charts(const Curves& curves) {
  std::vector<Chart> charts = {loss_chart(curves), perplexity_chart(curves)};
  if (!curves.bleu.empty()) charts.push_back(bleu_chart(curves));
  charts.push_back(rate_chart(curves));
  charts.push_back(learning_rate_chart(curves));
  charts.push_back(gradient_chart(curves));
  if (!curves.noise_scale.empty()) charts.push_back(noise_chart(curves));
  if (changes(curves.loss_scale)) charts.push_back(loss_scale_chart(curves));
  if (!curves.comm.empty() && curves.processes != 1) charts.push_back(communication_chart(curves));
  std::string out = "<section class=\"charts\" aria-label=\"curves\">\n";
  for (Chart& chart : charts) {
    chart.last_step = static_cast<double>(curves.last_step);
    out += render_chart(chart);
  }
  out += "</section>\n";
  return curves.noise_scale.empty() ? out : out + kNoiseNote;
}

}  // namespace stretto::report
