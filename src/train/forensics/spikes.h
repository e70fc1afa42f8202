#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/forensics/forensics_options.h"

namespace stretto::train {

/// Mean and variance of a series with exponential forgetting; exact averages for the first `window`
/// values.
///
///     a = max(1 / n, 1 / window),  d = x - mean,  mean += a d,  var = (1 - a) (var + a d^2)
struct MovingMoments {
  double mean = 0, variance = 0;
  int64_t count = 0;

  void add(double value, int64_t window);
};

/// Is a value far above what the series was of late?
///
/// z = (x - mean) / max(sqrt(var), 0.01 |mean|); the floor keeps a series that hardly moves (a
/// converged loss) from calling every wobble a spike. A value is a spike when z exceeds the
/// threshold; falling values never are. Spikes stay out of mean and variance, but ten in a row are
/// a new level: both start again from those ten. No verdict while fewer than 20 values were
/// averaged.
class SpikeSeries {
 public:
  static constexpr int64_t kWindow = 100, kWarmup = 20, kNewLevel = 10;

  /// z of a value against those before it; 0 without a verdict and for values that are not finite.
  double zscore(double value) const;
  /// Takes the value in. Those that are not finite leave no trace.
  /// @return whether it was a spike
  bool add(double value, double threshold);

  double mean() const { return moments_.mean; }
  void save(const std::string& prefix, std::map<std::string, double>& state) const;
  void restore(const std::string& prefix, const std::map<std::string, double>& state);

 private:
  MovingMoments moments_, spikes_;  // spikes_: those in a row that may be a new level
};

/// What one update looked like beside its predecessors.
struct SpikeVerdict {
  double loss_zscore = 0, grad_norm_zscore = 0;
  bool loss = false, grad_norm = false;  ///< these are spikes
  bool skip = false;                     ///< the update must not be applied (spike_policy = "skip")
  std::string text;                      ///< a line for the log; empty without a spike
};

/// Watches loss (as it is shown) and gradient norm (before clipping) of a run for spikes:
/// `train.forensics.spike_zscore` and `spike_policy`. All ranks feed it the same values. Either
/// spike is enough to leave the update out: both numbers are known before the step. At most ten
/// updates in a row are left out for one series, since those are its new level.
class SpikeDetector {
 public:
  explicit SpikeDetector(const ForensicsOptions& options);

  /// Once per update, after the gradient norm is known and before the weights change.
  SpikeVerdict look(double loss, double grad_norm);

  /// Everything that a resumed run needs, by name.
  std::map<std::string, double> state() const;
  /// What is missing in `state` starts afresh.
  void restore(const std::map<std::string, double>& state);

 private:
  double threshold_;
  bool skip_;
  SpikeSeries loss_, grad_norm_;
};

}  // namespace stretto::train
