#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compress/compress_options.h"

namespace stretto::compress {

/// When a run prunes, and how far. No libtorch: rules ask too.
///
/// Pruning i = 1, 2, … comes after begin + (i - 1) * every completed updates, and makes the share
/// of zeros
///
///     once     s                                           one pruning
///     steps    min(s, i * increment)                       as many as it takes
///     cubic    s - s (1 - i / n)^3                         n = (end - begin) / every + 1
///
/// (cubic: Zhu and Gupta 2017, arXiv:1710.01878, which begins with the share 0 at i = 0.)
class PruneSchedule {
 public:
  explicit PruneSchedule(const PruneOptions& options)
      : options_(options), prunings_(count(options)) {}

  /// How many prunings there are; 0 = this run prunes nothing.
  int64_t prunings() const { return prunings_; }

  /// The number of the pruning that is made after so many completed updates; 0 = none is.
  int64_t pruning_after(int64_t updates) const {
    const int64_t behind = updates - options_.begin;
    if (prunings_ == 0 || behind < 0 || behind % step() != 0) return 0;
    const int64_t number = behind / step() + 1;
    return number <= prunings_ ? number : 0;
  }

  /// The share of zeros after pruning i; 0 before the first one.
  double sparsity_of(int64_t number) const {
    if (number <= 0 || prunings_ == 0) return 0;
    if (number >= prunings_) return options_.sparsity;  // exactly, whatever rounds
    if (options_.schedule == "steps") {
      return std::min(options_.sparsity, static_cast<double>(number) * options_.increment);
    }
    const double left = 1 - static_cast<double>(number) / static_cast<double>(prunings_);
    return options_.sparsity * (1 - left * left * left);
  }

  /// The share of zeros that an update works with, by the completed updates before it.
  double sparsity_after(int64_t updates) const {
    if (prunings_ == 0 || updates < options_.begin) return 0;
    return sparsity_of(std::min(prunings_, (updates - options_.begin) / step() + 1));
  }

  /// Completed updates before the last pruning.
  int64_t last() const { return prunings_ == 0 ? 0 : options_.begin + (prunings_ - 1) * step(); }

 private:
  int64_t step() const { return std::max<int64_t>(1, options_.every); }

  static int64_t count(const PruneOptions& options) {
    if (!options.prunes()) return 0;
    if (options.schedule == "once") return 1;
    if (options.schedule == "steps") {
      // A share that the increments meet but for rounding takes no further one.
      return std::max<int64_t>(
          1, static_cast<int64_t>(std::ceil(options.sparsity / options.increment - 1e-9)));
    }
    return std::max<int64_t>(0, options.end - options.begin) / std::max<int64_t>(1, options.every) +
           1;
  }

  PruneOptions options_;
  int64_t prunings_;
};

}  // namespace stretto::compress
