#include "audio/mel_filters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>

namespace stretto::audio {
namespace {

constexpr double kHtkFactor = 2595, kHtkHz = 700;
// Slaney's scale: 200 / 3 Hz a mel below 1 kHz, and 27 mels for a factor of 6.4 above.
constexpr double kSlaneyHzOfMel = 200.0 / 3, kSlaneyBreakHz = 1000;
constexpr double kSlaneyBreakMel = kSlaneyBreakHz / kSlaneyHzOfMel;

double slaney_log_step() {
  return std::log(6.4) / 27;
}

/// A triangle of height 1 over [left, right] with its peak at `centre`.
double triangle(double at, double left, double centre, double right) {
  return std::max(0.0, std::min((at - left) / (centre - left), (right - at) / (right - centre)));
}

}  // namespace

double hz_to_mel(double hz, MelScale scale) {
  if (scale == MelScale::kHtk) return kHtkFactor * std::log10(1 + hz / kHtkHz);
  if (hz < kSlaneyBreakHz) return hz / kSlaneyHzOfMel;
  return kSlaneyBreakMel + std::log(hz / kSlaneyBreakHz) / slaney_log_step();
}

double mel_to_hz(double mel, MelScale scale) {
  if (scale == MelScale::kHtk) return kHtkHz * (std::pow(10.0, mel / kHtkFactor) - 1);
  if (mel < kSlaneyBreakMel) return mel * kSlaneyHzOfMel;
  return kSlaneyBreakHz * std::exp(slaney_log_step() * (mel - kSlaneyBreakMel));
}

MelFilters::MelFilters(const MelOptions& options, int64_t rate, int64_t fft_size) {
  const double nyquist = static_cast<double>(rate) / 2;
  const double high = options.high_hz > 0 ? options.high_hz : nyquist + options.high_hz;
  if (!(options.low_hz >= 0 && options.low_hz < high && high <= nyquist) || options.num_mels < 1) {
    throw std::invalid_argument("mel filters: " + std::to_string(options.num_mels) + " from " +
                                std::to_string(options.low_hz) + " to " + std::to_string(high) +
                                " Hz do not fit a rate of " + std::to_string(rate) + " Hz");
  }
  const double low_mel = hz_to_mel(options.low_hz, options.scale);
  const double step =
      (hz_to_mel(high, options.scale) - low_mel) / static_cast<double>(options.num_mels + 1);
  const bool in_mel = options.triangles == MelTriangles::kMel;
  const int64_t num_bins = fft_size / 2 + (in_mel ? 0 : 1);
  const auto on_axis = [&](double mel) { return in_mel ? mel : mel_to_hz(mel, options.scale); };
  for (int64_t m = 0; m < options.num_mels; ++m) {
    const double left_mel = low_mel + static_cast<double>(m) * step;
    const double left = on_axis(left_mel), centre = on_axis(left_mel + step);
    const double right = on_axis(left_mel + 2 * step);
    const double width_hz =
        mel_to_hz(left_mel + 2 * step, options.scale) - mel_to_hz(left_mel, options.scale);
    const double height = options.has_unit_area ? 2 / width_hz : 1;
    int64_t first_bin = 0, count = 0;
    for (int64_t bin = 0; bin < num_bins; ++bin) {
      const double hz =
          static_cast<double>(bin) * static_cast<double>(rate) / static_cast<double>(fft_size);
      const double at = in_mel ? hz_to_mel(hz, options.scale) : hz;
      const double weight = height * triangle(at, left, centre, right);
      if (weight <= 0 && count == 0) continue;
      if (weight <= 0) break;
      if (count++ == 0) first_bin = bin;
      filters_.weights.push_back(static_cast<float>(weight));
    }
    filters_.firsts.push_back(first_bin);
    filters_.begins.push_back(std::ssize(filters_.weights));
  }
}

void MelFilters::apply(std::span<const float> bins, std::span<float> mels) const {
  for (size_t m = 0; m < filters_.firsts.size(); ++m) {
    const float* values = bins.data() + filters_.firsts[m];
    float sum = 0;
    for (int64_t i = filters_.begins[m]; i < filters_.begins[m + 1]; ++i) {
      sum += filters_.weights[static_cast<size_t>(i)] * *values++;
    }
    mels[m] = sum;
  }
}

}  // namespace stretto::audio
