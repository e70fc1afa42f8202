#include "plan/linear_fit.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

namespace stretto::plan {
namespace {

TEST(LinearFit, FindsTheCoefficientsOfExactMeasurements) {
  std::vector<FitRow> rows;
  for (const double x : {1.0, 2.0, 5.0, 7.0}) {
    rows.push_back({.x = {1, x, 1e9 * x * x}, .y = 3 + 2 * x + 4 * x * x});
  }
  const LinearFit fit(rows);
  EXPECT_NEAR(fit.coefficients()[0], 3, 1e-6);
  EXPECT_NEAR(fit.coefficients()[1], 2, 1e-6);
  EXPECT_NEAR(fit.coefficients()[2], 4e-9, 1e-15);
  const std::vector<double> at{1, 10, 1e11};
  EXPECT_NEAR(fit.at(at).value, 423, 1e-6);
  EXPECT_GT(fit.at(at).error, 0.019 * 423) << "no measurement is better than it can be repeated";
}

TEST(LinearFit, HasNoCoefficientBelowZero) {
  // Least squares alone would give -1 + 2 x.
  const std::vector<FitRow> rows{{{1, 1}, 1}, {{1, 2}, 3}, {{1, 3}, 5}};
  const LinearFit fit(rows);
  EXPECT_EQ(fit.coefficients()[0], 0);
  EXPECT_NEAR(fit.coefficients()[1], 22.0 / 14, 1e-12);
}

TEST(LinearFit, IsLessSureFarFromWhatWasMeasured) {
  const std::vector<FitRow> rows{{{1, 1}, 1.1}, {{1, 2}, 1.9}, {{1, 3}, 3.1}, {{1, 4}, 3.9}};
  const LinearFit fit(rows);
  const std::vector<double> near{1, 2.5}, far{1, 25};
  EXPECT_LT(fit.at(near).error / fit.at(near).value, fit.at(far).error / fit.at(far).value);
}

TEST(LinearFit, RefusesWhatItCannotFit) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(LinearFit(std::vector<FitRow>{}), std::invalid_argument);
  EXPECT_THROW(LinearFit(std::vector<FitRow>{{{1}, infinity}}), std::invalid_argument);
  EXPECT_THROW(LinearFit(std::vector<FitRow>{{{1}, 1}, {{1, 2}, 1}}), std::invalid_argument);
  EXPECT_THROW(LinearFit(std::vector<FitRow>{{{1, 1, 1, 1, 1}, 1}}), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::plan
