#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/forensics/forensics_options.h"

namespace stretto::train {

/// Mean and variance of a series with exponential forgetting; exact averages for the first values.
/// The mean may forget sooner: values then differ from where the series is, not from where it was,
/// so that a trend adds little to the variance.
///
///     a = max(1 / n, 1 / window),  b = max(1 / n, 1 / level),  d = x - mean,
///     mean += b d,  var += a ((1 - b) d^2 - var)
struct MovingMoments {
  double mean = 0, variance = 0;
  int64_t count = 0;

  /// @param level   values that the mean remembers, at most `window`
  /// @param window  values that the variance remembers
  void add(double value, int64_t level, int64_t window);
};

/// Is a value far above what the series was of late?
///
/// Losses and gradient norms vary by factors, so the series is that of logarithms: y = ln x. A run
/// of fine-tuning begins with small gradients that grow tenfold within a hundred updates, and ends
/// with batches of which few have a large one. In logarithms both are moderate.
///
///     s = sqrt(var(y) + first^2 exp(-n / 50)),  at least 0.01 and at most 1.2
///     z = (y - mean(y)) / s
///
/// `first` is the spread that a series is thought to have before it is known. It fades with the
/// number n of values, so that the beginning of a run is judged generously, but judged: at
/// first = 0.5 and z = 6 the sixth value must be 17 times the mean to be a spike, the hundredth of
/// a steady series 3 times, the thousandth as much as its own spread says. The bounds of s keep a
/// series that hardly moves (a converged loss) from calling every wobble a spike, and let a wild
/// one have spikes at all.
///
/// A value is a spike when z exceeds the threshold; falling values never are, and one of less than
/// a thousandth of the mean counts as a thousandth. Spikes stay out of mean and variance, but ten
/// in a row are a new level: both start again from those ten. No verdict while fewer than 5 values
/// were averaged. Zeros before the first positive value are passed over.
///
/// From its first negative value on, a series begins again without logarithms:
/// s = max(sqrt(var(x)), 0.01 |mean|), and no verdict before 20 values.
class SpikeSeries {
 public:
  static constexpr int64_t kLevel = 20, kWindow = 100, kNewLevel = 10;
  static constexpr int64_t kWarmup = 5, kSignedWarmup = 20;

  /// @param first_spread  of the logarithms, before the first value
  explicit SpikeSeries(double first_spread) : first_spread_(first_spread) {}

  /// z of a value against those before it; 0 without a verdict and for values that are not finite.
  double zscore(double value) const;
  /// Takes the value in. Those that are not finite leave no trace.
  /// @return whether it was a spike
  bool add(double value, double threshold);

  double mean() const;  ///< the geometric one, but of a series with negative values
  void save(const std::string& prefix, std::map<std::string, double>& state) const;
  void restore(const std::string& prefix, const std::map<std::string, double>& state);

 private:
  double scaled(double value) const;
  double spread() const;

  double first_spread_;
  bool is_signed_ = false;          // a value was negative
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
  // Losses of batches differ less than their gradients do, also before anything is learned.
  static constexpr double kFirstSpreadOfLoss = 0.2, kFirstSpreadOfNorm = 0.5;

  double threshold_;
  bool skip_;
  SpikeSeries loss_{kFirstSpreadOfLoss}, grad_norm_{kFirstSpreadOfNorm};
};

}  // namespace stretto::train
