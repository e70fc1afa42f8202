#pragma once

#include <span>
#include <vector>

#include "plan/linear_fit.h"

namespace stretto::plan {

/// A loss that was measured.
struct LossPoint {
  double parameters = 0;  ///< of the model
  double updates = 0;     ///< made by then
  double loss = 0;
};

/// loss = floor + A parameters^-a + B updates^-b (Kaplan et al. 2020, arXiv:2001.08361, equation
/// 1.6; Hoffmann et al. 2022, arXiv:2203.15556, equation 2), for one data set and one batch.
///
/// A minute of training does not tell exponents. Each pair of them on a grid has its own best
/// floor, A and B, and a weight: how well it fits, times how usual the exponents are (a about 0.2,
/// b about 0.5, each within a factor of two). A prediction is the weighted mean over all pairs, and
/// its error has what pairs disagree about and what each leaves open.
class LossSurface {
 public:
  /// Throws std::invalid_argument for fewer than four points, and for numbers that are not above 0.
  explicit LossSurface(std::span<const LossPoint> points);

  Estimate at(double parameters, double updates) const;
  /// Updates behind which another second brings less than it would with a larger model: there
  /// b B updates^-b = a A parameters^-a, since seconds are in proportion to parameters times
  /// updates. 0 where no size is seen to be better than another.
  double balanced_updates(double parameters) const;
  Estimate size_exponent() const;  ///< a
  Estimate step_exponent() const;  ///< b

 private:
  struct Member {
    double size_exponent = 0, step_exponent = 0;
    LinearFit fit;  ///< of 1, parameters^-a, updates^-b
    double weight = 0;
  };

  double parameters_ = 1, updates_ = 1;  // what powers are relative to
  std::vector<Member> members_;
};

}  // namespace stretto::plan
