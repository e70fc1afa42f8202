#include "plan/linear_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

namespace stretto::plan {
namespace {

constexpr size_t kMostColumns = 4;
using Matrix = std::vector<std::vector<double>>;

// By Gauss-Jordan elimination; nothing where columns depend on each other.
std::optional<Matrix> inverted(Matrix a) {
  const size_t n = a.size();
  Matrix b(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i) b[i][i] = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (std::abs(a[pivot][column]) < 1e-12) return std::nullopt;
    std::swap(a[pivot], a[column]);
    std::swap(b[pivot], b[column]);
    const double divisor = a[column][column];
    for (size_t k = 0; k < n; ++k) {
      a[column][k] /= divisor;
      b[column][k] /= divisor;
    }
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column];
      for (size_t k = 0; k < n; ++k) {
        a[row][k] -= factor * a[column][k];
        b[row][k] -= factor * b[column][k];
      }
    }
  }
  return b;
}

void require_fit_rows(std::span<const FitRow> rows) {
  const auto wrong = [](const char* what) { throw std::invalid_argument(what); };
  if (rows.empty()) wrong("a fit needs a measurement");
  const size_t columns = rows.front().x.size();
  if (columns == 0 || columns > kMostColumns) wrong("a fit has one to four columns");
  for (const FitRow& row : rows) {
    if (row.x.size() != columns) wrong("rows of a fit differ in length");
    const bool is_finite = std::isfinite(row.y) && std::isfinite(row.weight) && row.weight > 0 &&
                           std::ranges::all_of(row.x, [](double x) { return std::isfinite(x); });
    if (!is_finite) wrong("a number of a fit is not finite");
  }
}

// The largest of each column, which are then about 1: pivots are compared with a constant.
std::vector<double> units_of(std::span<const FitRow> rows, const std::vector<size_t>& columns) {
  std::vector<double> units;
  for (const size_t column : columns) {
    double most = 0;
    for (const FitRow& row : rows) {
      most = std::max(most, std::abs(row.x[column]) * std::sqrt(row.weight));
    }
    units.push_back(most > 0 ? most : 1);
  }
  return units;
}

}  // namespace

bool LinearFit::try_columns(std::span<const FitRow> rows, unsigned columns) {
  std::vector<size_t> used;
  for (size_t i = 0; i < rows.front().x.size(); ++i) {
    if ((columns >> i) % 2 == 1) used.push_back(i);
  }
  const size_t n = used.size();
  if (n > rows.size()) return false;
  const auto units = units_of(rows, used);
  Matrix normal(n, std::vector<double>(n, 0));
  std::vector<double> right(n, 0);
  for (const FitRow& row : rows) {
    for (size_t i = 0; i < n; ++i) {
      const double x = row.x[used[i]] / units[i] * row.weight;
      right[i] += x * row.y;
      for (size_t k = 0; k < n; ++k) normal[i][k] += x * row.x[used[k]] / units[k];
    }
  }
  auto inverse = inverted(std::move(normal));
  if (!inverse) return false;
  std::vector<double> coefficients(rows.front().x.size(), 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      coefficients[used[i]] += (*inverse)[i][k] * right[k] / units[i];
      (*inverse)[i][k] /= units[i] * units[k];
    }
    if (coefficients[used[i]] < 0) return false;
  }
  double error = 0;
  for (const FitRow& row : rows) {
    double y = -row.y;
    for (const size_t i : used) y += coefficients[i] * row.x[i];
    error += row.weight * y * y;
  }
  if (!coefficients_.empty() && error >= squared_error_) return false;
  coefficients_ = std::move(coefficients);
  used_ = std::move(used);
  inverse_ = std::move(*inverse);
  squared_error_ = error;
  return true;
}

LinearFit::LinearFit(std::span<const FitRow> rows, double least_error) : least_error_(least_error) {
  require_fit_rows(rows);
  const unsigned subsets = 1U << rows.front().x.size();
  for (unsigned columns = 1; columns < subsets; ++columns) try_columns(rows, columns);
  if (coefficients_.empty()) {  // every column is zero, or has the wrong sign
    coefficients_.assign(rows.front().x.size(), 0);
    for (const FitRow& row : rows) squared_error_ += row.weight * row.y * row.y;
  }
  double floor = 0;  // of the variance
  for (const FitRow& row : rows) {
    floor += row.weight * std::pow(least_error_ * row.y, 2) / static_cast<double>(rows.size());
  }
  const size_t freedom = rows.size() > used_.size() ? rows.size() - used_.size() : 1;
  variance_ = std::max(squared_error_ / static_cast<double>(freedom), floor);
}

Estimate LinearFit::at(std::span<const double> x) const {
  Estimate estimate;
  double spread = 0;
  for (size_t i = 0; i < used_.size(); ++i) {
    estimate.value += coefficients_[used_[i]] * x[used_[i]];
    for (size_t k = 0; k < used_.size(); ++k) spread += inverse_[i][k] * x[used_[i]] * x[used_[k]];
  }
  const double own = std::pow(least_error_ * estimate.value, 2);
  estimate.error = std::sqrt(std::max(0.0, spread) * variance_ + own);
  return estimate;
}

}  // namespace stretto::plan
