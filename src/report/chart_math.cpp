#include "report/chart_math.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace stretto::report {
namespace {

/// The smallest of 1, 2, 5 × 10^k that is at least `value`.
double nice_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

void append_log_ticks(std::vector<double>* ticks, double low, double high, bool with_2_and_5,
                      int decades_apart) {
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int exponent = first; exponent <= last; ++exponent) {
    if (exponent % decades_apart != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, exponent);
      const bool inside = value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9);
      if (inside && (factor == 1.0 || with_2_and_5)) ticks->push_back(value);
    }
  }
}

/// "0.5", "1,200": as many digits as the number has, at most four significant ones.
std::string significant(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Each value replaced by the median of the five around it, which a lone spike cannot move.
std::vector<Point> without_spikes(const std::vector<Point>& points) {
  std::vector<Point> out = points;
  for (size_t i = 2; i + 2 < points.size(); ++i) {
    double window[5];
    for (size_t k = 0; k < 5; ++k) window[k] = points[i + k - 2].y;
    std::nth_element(window, window + 2, window + 5);
    out[i].y = window[2];
  }
  return out;
}

std::vector<double> averages(const std::vector<Point>& points, double keep, bool backward) {
  std::vector<double> out(points.size());
  double sum = 0, weight = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t at = backward ? points.size() - 1 - i : i;
    sum = keep * sum + points[at].y;
    weight = keep * weight + 1;
    out[at] = sum / weight;
  }
  return out;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int max_ticks) {
  // Beyond this the differences of doubles are no longer numbers to count with.
  const bool countable = high - low > 1e-12 * std::max(std::abs(low), std::abs(high)) &&
                         high - low > 1e-300 && high - low < 1e300;
  if (!countable || max_ticks < 2) return {low};
  double step = nice_step((high - low) / max_ticks);
  const auto first = [&] { return std::ceil(low / step - 1e-9); };
  const auto last = [&] { return std::floor(high / step + 1e-9); };
  while (last() - first() + 1 > max_ticks) step = nice_step(step * 1.5);
  while (last() - first() < 1) step = nice_step(step / 2.6);
  std::vector<double> ticks;
  for (double n = first(); n <= last(); ++n) ticks.push_back(n == 0 ? 0.0 : n * step);
  return ticks;
}

std::vector<double> nice_log_ticks(double low, double high, int max_ticks) {
  if (!(high > low) || !(low > 0)) return {low};
  if (high < 3 * low) return nice_ticks(low, high, max_ticks);
  std::vector<double> ticks;
  append_log_ticks(&ticks, low, high, true, 1);
  for (int apart = 1; static_cast<int>(ticks.size()) > max_ticks; ++apart) {
    ticks.clear();
    append_log_ticks(&ticks, low, high, false, apart);
  }
  return ticks.size() < 2 ? nice_ticks(low, high, max_ticks) : ticks;
}

std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e15 || size < 1e-3) {
    char text[64];
    std::snprintf(text, sizeof text, "%.2e", value);
    const std::string all = text;
    const size_t e = all.find('e');
    return significant(std::atof(all.substr(0, e).c_str())) + "e" +
           std::to_string(std::atoi(all.c_str() + e + 1));
  }
  if (size >= 1e9) return significant(value / 1e9) + "G";
  if (size >= 1e6) return significant(value / 1e6) + "M";
  if (size >= 1e4) return significant(value / 1e3) + "k";
  if (size >= 1e3) return with_thousands(std::llround(value));
  return significant(value);
}

std::vector<Point> downsample(const std::vector<Point>& points, size_t max_points) {
  if (points.size() <= max_points || max_points < 4) return points;
  std::vector<Point> out = {points.front()};
  const size_t inner = points.size() - 2, stretches = (max_points - 2) / 2;
  for (size_t s = 0; s < stretches; ++s) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(inner * s / stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>(inner * (s + 1) / stretches);
    const auto [least, greatest] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    out.push_back(*std::min(least, greatest));
    if (least != greatest) out.push_back(*std::max(least, greatest));
  }
  out.push_back(points.back());
  return out;
}

std::vector<Point> smooth(const std::vector<Point>& points, double window) {
  if (points.size() < 3 || window <= 1) return points;
  const double keep = 1 - 1 / window;
  std::vector<Point> out = without_spikes(points);
  const std::vector<double> forward = averages(out, keep, false);
  const std::vector<double> backward = averages(out, keep, true);
  for (size_t i = 0; i < out.size(); ++i) out[i].y = (forward[i] + backward[i]) / 2;
  return out;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto index = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[static_cast<size_t>(index)];
}

}  // namespace stretto::report
