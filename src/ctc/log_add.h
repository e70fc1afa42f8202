#pragma once

#include <cmath>
#include <utility>

namespace stretto::ctc {

/// log(exp(a) + exp(b)); either may be minus infinity.
inline double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  // What is less than half of the last digit adds nothing.
  constexpr double kNothing = 37;
  if (!(a - b < kNothing)) return a;
  return a + std::log1p(std::exp(b - a));
}

}  // namespace stretto::ctc
