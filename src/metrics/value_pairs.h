#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto::metrics {

/// Scores of real numbers. They need all pairs at once, so that sums() has a place for each sample.
class ValuePairs {
 public:
  /// @param num_samples  N, over all processes
  explicit ValuePairs(int64_t num_samples);

  /// @param sample  its number in [0, N). Throws std::invalid_argument for others, and for one that
  ///                this process has added before.
  void add(int64_t sample, double gold, double predicted);

  /// Gold values [N], predictions [N], and how often each sample was added [N].
  std::span<const double> sums() const { return sums_; }
  void set_sums(std::span<const double> sums);

  /// Pearson correlation of the samples that were added, as scipy.stats.pearsonr; NaN if one side
  /// is constant, has a NaN, or has fewer than two samples.
  double pearson() const;
  /// Spearman correlation, as scipy.stats.spearmanr: Pearson's of the ranks, where equal values
  /// have the mean of their ranks.
  double spearman() const;
  /// Mean of squared differences; NaN without samples.
  double mean_squared_error() const;

 private:
  struct Columns {
    std::vector<double> gold, predicted;
  };
  Columns added() const;

  size_t num_samples_;
  std::vector<double> sums_;
};

/// Ranks from 1; equal values have the mean of their ranks. Throws std::invalid_argument for a NaN.
std::vector<double> average_ranks(std::span<const double> values);

}  // namespace stretto::metrics
