#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/search_state.h"

namespace stretto::search {

/// How much one hyperparameter had to do with the results, as far as few trials can tell.
struct Importance {
  size_t parameter = 0;
  int64_t trials = 0;  ///< that had it, and a result
  /// Share of the variance of ranks that lies between its values (of an interval: between the
  /// quarters of the values tried) rather than within them: epsilon squared, the correlation ratio
  /// corrected for chance, from 0 to 1. It is of the key alone: what only a pair of keys explains
  /// is in neither. Absent with too few trials.
  std::optional<double> variance_share;
  /// Spearman's rank correlation with the result, below 0 when greater values are better; absent
  /// for values without an order, and with too few trials.
  std::optional<double> rank_correlation;
};

/// Results are compared where all trials have one: each trial's first report, ranked among those of
/// its bracket. A failed trial has the last rank.
std::vector<Importance> importances(const SearchState& state);

/// Epsilon squared of values in groups: (between - (k - 1) * within / (n - k)) / total, of sums of
/// squares, at least 0. Absent when n <= k, with one group, and without variance.
std::optional<double> epsilon_squared(const std::vector<std::vector<double>>& groups);
/// Spearman's rho of pairs, ties sharing their mean rank. Absent for fewer than three pairs, and
/// when all values of one side are equal.
std::optional<double> spearman(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace stretto::search
