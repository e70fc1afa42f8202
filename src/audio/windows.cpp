#include "audio/windows.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace stretto::audio {
namespace {

constexpr double kPoveyPower = 0.85;

double window_at(Window window, double angle) {
  switch (window) {
    case Window::kHann:
      return 0.5 - 0.5 * std::cos(angle);
    case Window::kHamming:
      return 0.54 - 0.46 * std::cos(angle);
    case Window::kBlackman:
      return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
    case Window::kPovey:
      return std::pow(0.5 - 0.5 * std::cos(angle), kPoveyPower);
    case Window::kRectangular:
      break;
  }
  return 1;
}

}  // namespace

std::vector<float> window_of(Window window, WindowSymmetry symmetry, int64_t size) {
  std::vector<float> values(static_cast<size_t>(size), 1.0F);
  const int64_t period = symmetry == WindowSymmetry::kPeriodic ? size : size - 1;
  for (int64_t n = 0; period > 0 && n < size; ++n) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period);
    values[static_cast<size_t>(n)] = static_cast<float>(window_at(window, angle));
  }
  return values;
}

}  // namespace stretto::audio
