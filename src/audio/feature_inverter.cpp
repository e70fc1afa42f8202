#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>

#include "audio/griffin_lim.h"
#include "audio/mel_filters.h"
#include "base/error.h"

namespace stretto::audio {
namespace {

constexpr double kMostExponent =
    36;  // no sound has e^36, and sums of squares of it are still floats
constexpr float kLeastEstimate = 1e-30F, kLoudest = 0.999F;

/// Spectra that explain the sums of filters: the updates of Richardson and Lucy, which keep numbers
/// positive and make the Kullback-Leibler divergence of the sums smaller.
class FilterInverter {
 public:
  FilterInverter(const SparseFilters& filters, int64_t num_bins, int64_t iterations)
      : filters_(filters),
        iterations_(iterations),
        sums_(static_cast<size_t>(num_bins)),
        factors_(static_cast<size_t>(num_bins)) {
    add(sums_, [](size_t) { return 1.0F; });
  }

  /// @param energies  [filters]
  /// @param bins      [num_bins], overwritten; 0 where no filter is
  void operator()(std::span<const float> energies, std::span<float> bins) {
    // Each bin begins with the mean of its filters' energies over their weights.
    const auto spread = [&](size_t m) {
      const float total = total_of(m);
      return total > 0 ? energies[m] / total : 0;
    };
    add(factors_, spread);
    for (size_t k = 0; k < bins.size(); ++k) bins[k] = sums_[k] > 0 ? factors_[k] / sums_[k] : 0;
    for (int64_t i = 0; i < iterations_; ++i) {
      add(factors_,
          [&](size_t m) { return energies[m] / std::max(filtered(bins, m), kLeastEstimate); });
      for (size_t k = 0; k < bins.size(); ++k) {
        if (sums_[k] > 0) bins[k] *= factors_[k] / sums_[k];
      }
    }
  }

 private:
  float total_of(size_t m) const {
    float total = 0;
    for (int64_t i = filters_.begins[m]; i < filters_.begins[m + 1]; ++i) {
      total += filters_.weights[static_cast<size_t>(i)];
    }
    return total;
  }
  float filtered(std::span<const float> bins, size_t m) const {
    const float* values = bins.data() + filters_.firsts[m];
    float sum = 0;
    for (int64_t i = filters_.begins[m]; i < filters_.begins[m + 1]; ++i) {
      sum += filters_.weights[static_cast<size_t>(i)] * *values++;
    }
    return sum;
  }
  /// to[k] = sum over filters of weight * value(filter)
  template <class Value>
  void add(std::vector<float>& to, const Value& value) const {
    std::fill(to.begin(), to.end(), 0.0F);
    for (size_t m = 0; m < filters_.firsts.size(); ++m) {
      const float factor = value(m);
      float* values = to.data() + filters_.firsts[m];
      for (int64_t i = filters_.begins[m]; i < filters_.begins[m + 1]; ++i) {
        *values++ += filters_.weights[static_cast<size_t>(i)] * factor;
      }
    }
  }

  const SparseFilters& filters_;
  int64_t iterations_;
  std::vector<float> sums_;     ///< [bins]: of the weights of all filters
  std::vector<float> factors_;  ///< [bins]
};

/// Magnitudes with another exponent, as loud as before.
void sharpen(Features& magnitudes, double power) {
  if (power == 1 || magnitudes.values.empty()) return;
  // Shares of the largest, whose powers are small numbers.
  const double peak = *std::max_element(magnitudes.values.begin(), magnitudes.values.end());
  if (!(peak > 0)) return;
  double before = 0, now = 0;
  for (float& value : magnitudes.values) {
    before += static_cast<double>(value) * value;
    value = static_cast<float>(std::pow(value / peak, power));
    now += static_cast<double>(value) * value;
  }
  const auto gain = static_cast<float>(std::sqrt(before / now));
  for (float& value : magnitudes.values) value *= gain;
}

}  // namespace

std::string inversion_obstacle(const FeatureKeys& keys) {
  if (keys.kind == "mfcc") {
    return "cepstral coefficients do not say what the spectrum was: set features.kind = "
           "\"log_mel\" or \"spectrogram\"";
  }
  if (keys.dialect != "librosa") {
    return "the kaldi dialect takes the mean of each frame off: set features.dialect = "
           "\"librosa\"";
  }
  if (keys.kind == "spectrogram" && keys.num_bins > 0) {
    return "bins of high frequencies are cut off: set features.num_bins = 0";
  }
  if (keys.normalise == "per_feature" || keys.normalise == "global") {
    return "the mean and deviation of each sound are taken off: set features.normalise = "
           "\"none\" or \"fixed\"";
  }
  return "";
}

struct FeatureInverter::State {
  State(const FeatureKeys& all_keys, const GriffinLimOptions& all_options)
      : keys(all_keys), options(all_options), frames(keys.options()) {
    if (frames.mel) mel.emplace(*frames.mel, frames.rate, frames.fft_size);
  }

  /// What stood before normalisation and compression: magnitudes, or their filtered powers.
  float energy_of(float value, size_t feature) const {
    double x = value;
    if (!std::isfinite(x)) return 0;
    if (keys.normalise == "fixed") {
      const double deviation = keys.std.size() == 1 ? keys.std[0] : keys.std[feature];
      x = x * deviation + (keys.mean.size() == 1 ? keys.mean[0] : keys.mean[feature]);
    }
    if (frames.compression == Compression::kDecibel) x *= std::numbers::ln10 / 10;
    if (frames.compression != Compression::kNone) x = std::exp(std::min(x, kMostExponent));
    if (frames.compression == Compression::kLogOfSum) x -= frames.floor;
    return std::isfinite(x) && x > 0 ? static_cast<float>(std::min(x, std::exp(kMostExponent))) : 0;
  }

  FeatureKeys keys;
  GriffinLimOptions options;
  FeatureOptions frames;
  std::optional<MelFilters> mel;
};

FeatureInverter::FeatureInverter(const FeatureKeys& keys, const GriffinLimOptions& options) {
  const std::string obstacle = inversion_obstacle(keys);
  if (!obstacle.empty()) {
    const auto colon = obstacle.find(": ");
    throw Error(ExitCode::kUsage, "no sound of these features: " + obstacle.substr(0, colon),
                obstacle.substr(colon + 2));
  }
  state_ = std::make_unique<const State>(keys, options);
}
FeatureInverter::~FeatureInverter() = default;
FeatureInverter::FeatureInverter(FeatureInverter&&) noexcept = default;
FeatureInverter& FeatureInverter::operator=(FeatureInverter&&) noexcept = default;

Features FeatureInverter::magnitudes(const Features& features) const {
  const State& state = *state_;
  if (features.width != state.keys.width()) {
    throw std::invalid_argument("feature inverter: " + std::to_string(features.width) +
                                " features, and keys of " + std::to_string(state.keys.width()));
  }
  const int64_t bins = state.frames.fft_size / 2 + 1, frames = features.num_frames();
  Features result{.width = bins, .values = {}};
  result.values.resize(static_cast<size_t>(frames * bins));
  std::optional<FilterInverter> invert;
  if (state.mel) invert.emplace(state.mel->filters(), bins, state.options.mel_iterations);
  std::vector<float> energies(static_cast<size_t>(features.width));
  for (int64_t f = 0; f < frames; ++f) {
    const auto frame = features.frame(f);
    for (size_t i = 0; i < energies.size(); ++i) energies[i] = state.energy_of(frame[i], i);
    const std::span<float> row(result.values.data() + f * bins, static_cast<size_t>(bins));
    if (invert) {
      (*invert)(energies, row);
    } else {
      std::copy(energies.begin(), energies.end(), row.begin());
    }
  }
  const double root = 1 / state.frames.power;
  for (float& value : result.values) {
    value = static_cast<float>(std::pow(static_cast<double>(value), root));
  }
  return result;
}

std::vector<float> FeatureInverter::operator()(const Features& features, uint64_t seed) const {
  const State& state = *state_;
  Features spectra = magnitudes(features);
  sharpen(spectra, state.options.magnitude_power);
  auto sound = griffin_lim(spectra, state.frames, state.options, seed);
  const auto factor = static_cast<float>(state.frames.preemphasis);
  float before = 0, peak = 0;
  for (float& sample : sound) {
    sample += factor * before;
    before = sample;
    peak = std::max(peak, std::abs(sample));
  }
  // What a file would cut off.
  const float gain = peak > kLoudest ? kLoudest / peak : 1;
  for (float& sample : sound) sample *= gain;
  return sound;
}

}  // namespace stretto::audio
