#include "train/forensics/spikes.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stretto::train {
namespace {

constexpr double kSmallestDeviation = 0.01;  // of |mean|
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

void MovingMoments::add(double value, int64_t window) {
  ++count;
  const double part = 1.0 / static_cast<double>(std::min(count, window));
  const double distance = value - mean;
  mean += part * distance;
  variance = (1 - part) * (variance + part * distance * distance);
}

double SpikeSeries::zscore(double value) const {
  if (moments_.count < kWarmup || !std::isfinite(value)) return 0;
  const double floor = kSmallestDeviation * std::abs(moments_.mean);
  const double deviation = std::max(std::sqrt(moments_.variance), floor);
  return deviation > 0 ? (value - moments_.mean) / deviation : 0;
}

bool SpikeSeries::add(double value, double threshold) {
  if (!std::isfinite(value)) return false;
  if (zscore(value) <= threshold) {
    moments_.add(value, kWindow);
    spikes_ = {};
    return false;
  }
  spikes_.add(value, kWindow);
  if (spikes_.count == kNewLevel) {
    moments_ = spikes_;
    spikes_ = {};
  }
  return true;
}

void SpikeSeries::save(const std::string& prefix, std::map<std::string, double>& state) const {
  save_moments(moments_, prefix, state);
  save_moments(spikes_, prefix + "spikes_", state);
}

void SpikeSeries::restore(const std::string& prefix, const std::map<std::string, double>& state) {
  moments_ = read_moments(prefix, state);
  spikes_ = read_moments(prefix + "spikes_", state);
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
