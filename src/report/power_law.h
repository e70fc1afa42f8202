#pragma once

#include <optional>
#include <span>

#include "report/chart_math.h"

namespace stretto::report {

/// y = floor + scale x^-exponent: how losses fall with updates (Hestness et al. 2017,
/// arXiv:1712.00409; Kaplan et al. 2020, arXiv:2001.08361).
struct PowerLaw {
  double floor = 0, scale = 0, exponent = 0;  ///< none is negative

  double at(double x) const;
  /// What is still above the floor: scale x^-exponent.
  double excess(double x) const;
};

/// The law with the least squared error, over exponents from 0.05 to 2. One that does not fall has
/// scale 0 and the mean as its floor. Nothing for fewer than four points, or for values that are
/// not finite, x that are not above 0, or all the same x.
std::optional<PowerLaw> fit_power_law(std::span<const Point> points);

}  // namespace stretto::report
