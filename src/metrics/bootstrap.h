#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "metrics/scorers.h"

namespace stretto::metrics {

struct BootstrapOptions {
  int resamples = 1000;      ///< corpora drawn with replacement, at least 2
  uint64_t seed = 12345;     ///< key of the RandomStream that draws them
  double confidence = 0.95;  ///< of the intervals, in (0, 1)
};

/// A corpus score and where it lies in resampled corpora.
struct Interval {
  double score = 0;  ///< of the corpus as it is
  double mean = 0;   ///< over the resamples
  double low = 0;    ///< the interval at `confidence`, by percentiles
  double high = 0;
};

/// Outcome of comparing two systems on the same segments.
struct BootstrapResult {
  Interval system;
  Interval baseline;
  Interval difference;  ///< system minus baseline, resampled together
  /// Chance of a difference at least this large between equal systems, two-sided: with d* the
  /// resampled differences, (1 + #{ |d* - mean d*| >= |d| }) / (1 + resamples). sacreBLEU's
  /// --paired-bs counts |d*| - mean |d*| > |d| instead: about half of it for systems that differ,
  /// and 1 / (1 + resamples), as if they differed for certain, for two that are the same.
  double p_value = 1;
  /// Share of resamples in which the system's score is above the baseline's (for TER: below).
  double win_rate = 0;
  /// True when the interval of the difference leaves 0 out.
  bool significant = false;
};

/// Confidence interval of a corpus score by resampling segments (Koehn 2004, section 3).
/// Throws as `compute` does, and Error(kUsage) for options out of range.
Interval bootstrap_interval(const ScoreOptions& options, std::span<const std::string> hypotheses,
                            std::span<const std::vector<std::string>> references,
                            const BootstrapOptions& bootstrap = {});

/// Paired bootstrap (Koehn 2004, section 4): both systems are scored on the same resamples, so that
/// what makes a segment hard for both does not hide their difference. Throws as
/// `bootstrap_interval`.
BootstrapResult paired_bootstrap(const ScoreOptions& options, std::span<const std::string> system,
                                 std::span<const std::string> baseline,
                                 std::span<const std::vector<std::string>> references,
                                 const BootstrapOptions& bootstrap = {});

}  // namespace stretto::metrics
