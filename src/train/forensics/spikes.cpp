#include "train/forensics/spikes.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stretto::train {
namespace {

// Bounds of a spread of logarithms; the smallest is a hundredth of |mean| in a series with negative
// values.
constexpr double kSmallestSpread = 0.01, kLargestSpread = 1.2;
constexpr double kFades = 50;           // values in which the first spread falls by a factor e
constexpr double kDeepestFall = 6.908;  // ln 1000
constexpr int kDigits = 4;

double value_or_zero(const std::map<std::string, double>& state, const std::string& name) {
  const auto found = state.find(name);
  return found == state.end() ? 0 : found->second;
}

void save_moments(const MovingMoments& moments, const std::string& prefix,
                  std::map<std::string, double>& state) {
  state[prefix + "mean"] = moments.mean;
  state[prefix + "variance"] = moments.variance;
  state[prefix + "count"] = static_cast<double>(moments.count);
}

MovingMoments read_moments(const std::string& prefix, const std::map<std::string, double>& state) {
  return {.mean = value_or_zero(state, prefix + "mean"),
          .variance = value_or_zero(state, prefix + "variance"),
          .count = static_cast<int64_t>(value_or_zero(state, prefix + "count"))};
}

std::string deviation_text(const char* what, double value, double zscore, double mean) {
  return std::string(what) + " " + fixed(value, kDigits) + " stands " + fixed(zscore, 1) +
         " deviations above its mean " + fixed(mean, kDigits);
}

}  // namespace

void MovingMoments::add(double value, int64_t level, int64_t window) {
  ++count;
  const double part = 1.0 / static_cast<double>(std::min(count, window));
  const double step = 1.0 / static_cast<double>(std::min(count, level));
  const double distance = value - mean;
  mean += step * distance;
  variance += part * ((1 - step) * distance * distance - variance);
}

// A loss of 1e-12 among others of 0.1 would make the spread of all useless for a hundred updates.
double SpikeSeries::scaled(double value) const {
  if (is_signed_) return value;
  const double lowest = moments_.mean - kDeepestFall;
  const double logarithm = value > 0 ? std::log(value) : lowest;
  return moments_.count == 0 ? logarithm : std::max(logarithm, lowest);
}

double SpikeSeries::spread() const {
  if (is_signed_) {
    return std::max(std::sqrt(moments_.variance), kSmallestSpread * std::abs(moments_.mean));
  }
  const double unknown = std::exp(-static_cast<double>(moments_.count) / kFades);
  const double variance = moments_.variance + first_spread_ * first_spread_ * unknown;
  return std::clamp(std::sqrt(variance), kSmallestSpread, kLargestSpread);
}

double SpikeSeries::zscore(double value) const {
  if (moments_.count < (is_signed_ ? kSignedWarmup : kWarmup) || !std::isfinite(value)) return 0;
  const double deviation = spread();
  return deviation > 0 ? (scaled(value) - moments_.mean) / deviation : 0;
}

bool SpikeSeries::add(double value, double threshold) {
  if (!std::isfinite(value)) return false;
  if (value < 0 && !is_signed_) {
    is_signed_ = true;
    moments_ = spikes_ = {};
  }
  if (!is_signed_ && moments_.count == 0 && value <= 0) return false;
  if (zscore(value) <= threshold) {
    moments_.add(scaled(value), kLevel, kWindow);
    spikes_ = {};
    return false;
  }
  spikes_.add(scaled(value), kLevel, kWindow);
  if (spikes_.count == kNewLevel) {
    moments_ = spikes_;
    spikes_ = {};
  }
  return true;
}

double SpikeSeries::mean() const {
  if (is_signed_) return moments_.mean;
  return moments_.count == 0 ? 0 : std::exp(moments_.mean);
}

// Checkpoints of earlier versions hold moments of the values themselves, under names without
// "log_": the series of such a run begins anew.
void SpikeSeries::save(const std::string& prefix, std::map<std::string, double>& state) const {
  save_moments(moments_, prefix + "log_", state);
  save_moments(spikes_, prefix + "log_spikes_", state);
  state[prefix + "signed"] = is_signed_ ? 1 : 0;
}

void SpikeSeries::restore(const std::string& prefix, const std::map<std::string, double>& state) {
  moments_ = read_moments(prefix + "log_", state);
  spikes_ = read_moments(prefix + "log_spikes_", state);
  is_signed_ = value_or_zero(state, prefix + "signed") != 0;
}

SpikeDetector::SpikeDetector(const ForensicsOptions& options)
    : threshold_(options.spike_zscore), skip_(options.spike_policy == "skip") {}

SpikeVerdict SpikeDetector::look(double loss, double grad_norm) {
  if (threshold_ <= 0) return {};
  // A loss that is not finite spoils the whole update: its norm says nothing about the series.
  if (!std::isfinite(loss) || !std::isfinite(grad_norm)) return {};
  const double loss_mean = loss_.mean(), norm_mean = grad_norm_.mean();
  SpikeVerdict verdict{.loss_zscore = loss_.zscore(loss),
                       .grad_norm_zscore = grad_norm_.zscore(grad_norm)};
  verdict.loss = loss_.add(loss, threshold_);
  verdict.grad_norm = grad_norm_.add(grad_norm, threshold_);
  verdict.skip = skip_ && (verdict.loss || verdict.grad_norm);
  if (!verdict.loss && !verdict.grad_norm) return verdict;
  if (verdict.loss) verdict.text += deviation_text("loss", loss, verdict.loss_zscore, loss_mean);
  if (verdict.loss && verdict.grad_norm) verdict.text += ", ";
  if (verdict.grad_norm) {
    verdict.text += deviation_text("gradient norm", grad_norm, verdict.grad_norm_zscore, norm_mean);
  }
  verdict.text += verdict.skip ? "; the update is left out" : "";
  return verdict;
}

std::map<std::string, double> SpikeDetector::state() const {
  std::map<std::string, double> state;
  loss_.save("loss_", state);
  grad_norm_.save("grad_norm_", state);
  return state;
}

void SpikeDetector::restore(const std::map<std::string, double>& state) {
  loss_.restore("loss_", state);
  grad_norm_.restore("grad_norm_", state);
}

}  // namespace stretto::train
