#include "report/power_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stretto::report {
namespace {

constexpr int kExponents = 120;
constexpr double kLeastExponent = 0.05, kGreatestExponent = 2;
constexpr size_t kFewestPoints = 4;

double squared_error_of(const PowerLaw& law, std::span<const Point> points) {
  double sum = 0;
  for (const Point& point : points) {
    const double error = law.at(point.x) - point.y;
    sum += error * error;
  }
  return sum;
}

// Floor and scale of least squares at one exponent; where one of them would be negative it is 0.
PowerLaw law_of_exponent(double exponent, std::span<const Point> points) {
  const auto n = static_cast<double>(points.size());
  double power = 0, y = 0;
  for (const Point& point : points) {
    power += std::pow(point.x, -exponent) / n;
    y += point.y / n;
  }
  double square = 0, product = 0, raw_square = 0, raw_product = 0;
  for (const Point& point : points) {
    const double p = std::pow(point.x, -exponent);
    square += (p - power) * (p - power);
    product += (p - power) * (point.y - y);
    raw_square += p * p;
    raw_product += p * point.y;
  }
  const double scale = square > 0 ? product / square : 0;
  if (scale <= 0) return {.floor = y, .scale = 0, .exponent = exponent};
  const double floor = y - scale * power;
  if (floor >= 0) return {.floor = floor, .scale = scale, .exponent = exponent};
  return {.floor = 0, .scale = std::max(0.0, raw_product / raw_square), .exponent = exponent};
}

bool can_be_fitted(std::span<const Point> points) {
  if (points.size() < kFewestPoints) return false;
  const bool are_sound = std::ranges::all_of(points, [](const Point& point) {
    return std::isfinite(point.x) && std::isfinite(point.y) && point.x > 0;
  });
  return are_sound && std::ranges::any_of(
                          points, [&](const Point& point) { return point.x != points.front().x; });
}

}  // namespace

double PowerLaw::excess(double x) const {
  return scale > 0 ? scale * std::pow(x, -exponent) : 0;
}

double PowerLaw::at(double x) const {
  return floor + excess(x);
}

// Powers are of x over the largest one, so that none overflows or vanishes.
std::optional<PowerLaw> fit_power_law(std::span<const Point> points) {
  if (!can_be_fitted(points)) return std::nullopt;
  std::vector<Point> scaled(points.begin(), points.end());
  const double unit = std::ranges::max_element(scaled, {}, &Point::x)->x;
  for (Point& point : scaled) point.x /= unit;
  std::optional<PowerLaw> best;
  double least = 0;
  for (int i = 0; i < kExponents; ++i) {
    const double share = static_cast<double>(i) / (kExponents - 1);
    const double exponent = kLeastExponent * std::pow(kGreatestExponent / kLeastExponent, share);
    const PowerLaw law = law_of_exponent(exponent, scaled);
    const double error = squared_error_of(law, scaled);
    if (best && error >= least) continue;
    best = law;
    least = error;
  }
  best->scale *= std::pow(unit, best->exponent);
  return best;
}

}  // namespace stretto::report
