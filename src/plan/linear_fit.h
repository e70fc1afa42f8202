#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stretto::plan {

/// A number with its standard error.
struct Estimate {
  double value = 0, error = 0;
};

/// One measurement: y is about the sum of coefficient times x.
struct FitRow {
  std::vector<double> x;
  double y = 0;
  double weight = 1;  ///< of its squared error; 1 / y^2 makes errors relative
};

/// Least squares in which no coefficient is below zero: times, bytes and losses have no negative
/// parts. All sets of columns are tried, so that the result is exact.
class LinearFit {
 public:
  /// @param rows         at least one, all with the same one to four columns
  /// @param least_error  of a measurement, as a share of it: what repeating it would show. Few rows
  ///                     fit themselves too well, and no error is said to be less
  /// Throws std::invalid_argument for other rows, and for numbers that are not finite.
  explicit LinearFit(std::span<const FitRow> rows, double least_error = 0.02);

  /// Of one more measurement at x: the error has both that of the coefficients and its own.
  Estimate at(std::span<const double> x) const;
  const std::vector<double>& coefficients() const { return coefficients_; }
  double squared_error() const { return squared_error_; }  ///< weighted, of all rows

 private:
  bool try_columns(std::span<const FitRow> rows, unsigned columns);

  std::vector<double> coefficients_;
  std::vector<size_t> used_;                  // columns with a coefficient
  std::vector<std::vector<double>> inverse_;  // of the normal equations of used columns
  double squared_error_ = 0, variance_ = 0;   // of a row of weight 1
  double least_error_;
};

}  // namespace stretto::plan
