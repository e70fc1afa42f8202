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

std::string scientific(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2e", value);
  const std::string all = text;
  const size_t e = all.find('e');
  return significant(std::atof(all.substr(0, e).c_str())) + "e" +
         std::to_string(std::atoi(all.c_str() + e + 1));
}

/// "12,345.50"
std::string grouped(double value, int decimals) {
  std::string text = fixed(value, decimals);
  const size_t first = text.starts_with('-') ? 1 : 0;
  const size_t point = std::min(text.find('.'), text.size());
  for (size_t at = point; at > first + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

/// Decimals that show `value` to within `tolerance`; 99 when that takes more than twelve.
int decimals_for(double value, double tolerance) {
  double power = 1;
  for (int decimals = 0; decimals <= 12; ++decimals, power *= 10) {
    if (std::abs(value * power - std::round(value * power)) <= tolerance * power) return decimals;
  }
  return 99;
}

/// What a linear axis has, and a logarithmic one over decades has not.
bool evenly_spaced(const std::vector<double>& ticks) {
  for (size_t i = 2; i < ticks.size(); ++i) {
    const double step = ticks[1] - ticks[0];
    if (std::abs(ticks[i] - ticks[i - 1] - step) > 1e-6 * step) return false;
  }
  return true;
}

/// The neighbour below of ticks that a logarithmic axis has: of 1, 2, 5 or of powers of ten.
double log_tick_below(const std::vector<double>& ticks) {
  const double ratio = ticks[1] / ticks[0];
  if (ratio > 9) return ticks[0] / ratio;
  const double mantissa = ticks[0] / std::pow(10.0, std::floor(std::log10(ticks[0]) + 1e-9));
  return ticks[0] / (mantissa > 4 ? 2.5 : 2);
}

struct Unit {
  double size;
  const char* name;
};

Unit unit_of(double largest) {
  if (largest >= 1e9) return {1e9, "G"};
  if (largest >= 1e6) return {1e6, "M"};
  if (largest >= 1e5) return {1e3, "k"};
  return {1, ""};
}

constexpr int kMostDecimals = 5;

std::vector<std::string> linear_labels(const std::vector<double>& ticks, double largest) {
  Unit unit = unit_of(largest);
  const double step = ticks.size() > 1 ? std::abs(ticks[1] - ticks[0]) : largest;
  const auto decimals_in = [&](const Unit& u) {
    int decimals = 0;
    for (const double tick : ticks)
      decimals = std::max(decimals, decimals_for(tick / u.size, 1e-6 * step / u.size));
    return decimals;
  };
  int decimals = decimals_in(unit);
  std::string suffix = unit.name;
  if (decimals > kMostDecimals || largest >= 1e15) {
    const int exponent = static_cast<int>(std::floor(std::log10(largest) + 1e-9));
    unit.size = std::pow(10.0, exponent);
    suffix = "e" + std::to_string(exponent);
    decimals = std::min(decimals_in(unit), 12);
  }
  std::vector<std::string> labels;
  for (const double tick : ticks)
    labels.push_back(tick == 0 ? "0" : grouped(tick / unit.size, decimals) + suffix);
  return labels;
}

std::vector<std::string> decade_labels(const std::vector<double>& ticks, double largest) {
  const double least = *std::min_element(ticks.begin(), ticks.end());
  const bool plain = largest < 1e15 && least >= 1e-3 && !(largest >= 1e5 && least < 0.1);
  std::vector<std::string> labels;
  for (const double tick : ticks) {
    if (!plain) {
      labels.push_back(scientific(tick));
    } else if (largest < 1e5) {
      labels.push_back(grouped(tick, decimals_for(tick, 1e-6 * tick)));
    } else {
      const bool thousands = tick >= 1e3 && tick < 1e5;
      const Unit unit = thousands ? Unit{1e3, "k"} : unit_of(tick);
      labels.push_back(significant(tick / unit.size) + unit.name);
    }
  }
  return labels;
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

std::vector<double> axis_ticks(double low, double high, int max_ticks, bool logarithmic) {
  std::vector<double> ticks =
      logarithmic ? nice_log_ticks(low, high, max_ticks) : nice_ticks(low, high, max_ticks);
  if (ticks.size() < 2 || ticks[0] <= low + 1e-9 * (high - low)) return ticks;
  const double ratio = ticks[1] / ticks[0];
  // Two ticks are evenly spaced in any case; 1, 2, 5 and 10 are neighbours on decades only.
  const bool of_decades = ticks.size() == 2 ? ratio > 1.9 : !evenly_spaced(ticks);
  if (logarithmic && high >= 3 * low && of_decades) {
    ticks.insert(ticks.begin(), log_tick_below(ticks));
    return ticks;
  }
  const double step = ticks[1] - ticks[0], n = std::round(ticks[0] / step) - 1;
  if (logarithmic && n <= 0) return ticks;
  ticks.insert(ticks.begin(), n == 0 ? 0.0 : n * step);
  return ticks;
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks) {
  double largest = 0;
  for (const double tick : ticks) largest = std::max(largest, std::abs(tick));
  if (largest == 0) return std::vector<std::string>(ticks.size(), "0");
  if (ticks.size() < 2) return {tick_label(ticks[0])};
  const double least = *std::min_element(ticks.begin(), ticks.end());
  const bool far =
      ticks.size() == 2 && ticks[1] >= 10 * ticks[0];  // two are evenly spaced in any case
  const bool decades = least > 0 && (far || !evenly_spaced(ticks));
  return decades ? decade_labels(ticks, largest) : linear_labels(ticks, largest);
}

std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e15 || size < 1e-3) return scientific(value);
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
