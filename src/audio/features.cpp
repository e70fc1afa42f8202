#include "audio/features.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "audio/real_fft.h"
#include "base/random.h"

namespace stretto::audio {
namespace {

constexpr double kTenMs = 0.01, kTwentyFiveMs = 0.025;

void require_option(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("features: ") + what);
}

/// The sample that stands at a place outside of n samples; -1: a zero.
int64_t padded_place(int64_t at, int64_t n, Padding padding) {
  if (at >= 0 && at < n) return at;
  if (padding == Padding::kZeros) return -1;
  const int64_t edge = padding == Padding::kReflect ? 1 : 0;
  const int64_t period = 2 * (n - edge);
  if (period == 0) return 0;
  const int64_t phase = (at % period + period) % period;
  return phase < n ? phase : period - phase - (1 - edge);
}

void emphasise(std::span<float> samples, float factor, float first_factor) {
  for (size_t i = samples.size() - 1; i > 0; --i) samples[i] -= factor * samples[i - 1];
  samples[0] -= first_factor * samples[0];
}

int64_t next_power_of_two(int64_t size) {
  int64_t power = 2;
  while (power < size) power *= 2;
  return power;
}

double lifter_at(const FeatureOptions& options, int64_t k) {
  if (options.lifter == 0) return 1;
  const int64_t place = options.dialect == Dialect::kKaldi ? k : k + 1;
  return 1 + options.lifter / 2 *
                 std::sin(std::numbers::pi * static_cast<double>(place) / options.lifter);
}

std::vector<float> cosine_table(const FeatureOptions& options, int64_t num_inputs) {
  std::vector<float> table;
  for (int64_t k = 0; k < options.num_coefficients; ++k) {
    const double scale =
        lifter_at(options, k) * std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(num_inputs));
    for (int64_t m = 0; m < num_inputs; ++m) {
      const double angle = std::numbers::pi * static_cast<double>(k) *
                           (static_cast<double>(m) + 0.5) / static_cast<double>(num_inputs);
      table.push_back(static_cast<float>(scale * std::cos(angle)));
    }
  }
  return table;
}

void take_power(std::span<const std::complex<float>> spectrum, double power,
                std::span<float> bins) {
  for (size_t i = 0; i < bins.size(); ++i) {
    const float re = spectrum[i].real(), im = spectrum[i].imag();
    bins[i] = re * re + im * im;
  }
  if (power == 2) return;
  for (float& bin : bins) {
    bin = power == 1 ? std::sqrt(bin)
                     : static_cast<float>(std::pow(static_cast<double>(bin), power / 2));
  }
}

}  // namespace

FeatureOptions librosa_mel(int64_t rate) {
  return {.rate = rate,
          .frame_samples = 2048,
          .hop_samples = 512,
          .fft_size = 2048,
          .mel = MelOptions{.num_mels = 128},
          .compression = Compression::kNone};
}

FeatureOptions librosa_mfcc(int64_t rate) {
  FeatureOptions options = librosa_mel(rate);
  options.compression = Compression::kDecibel;
  options.num_coefficients = 20;
  return options;
}

FeatureOptions kaldi_fbank(int64_t rate) {
  const auto frame = static_cast<int64_t>(static_cast<double>(rate) * kTwentyFiveMs);
  return {.dialect = Dialect::kKaldi,
          .rate = rate,
          .frame_samples = frame,
          .hop_samples = static_cast<int64_t>(static_cast<double>(rate) * kTenMs),
          .fft_size = next_power_of_two(frame),
          .window = Window::kPovey,
          .covers_ends = false,
          .padding = Padding::kSymmetric,
          .scale = 32768,
          .preemphasis = 0.97,
          .removes_mean = true,
          .mel = MelOptions{.num_mels = 23,
                            .low_hz = 20,
                            .scale = MelScale::kHtk,
                            .triangles = MelTriangles::kMel,
                            .has_unit_area = false},
          .floor = std::numeric_limits<float>::epsilon()};
}

FeatureOptions kaldi_mfcc(int64_t rate) {
  FeatureOptions options = kaldi_fbank(rate);
  options.num_coefficients = 13;
  options.lifter = 22;
  options.has_energy = true;
  return options;
}

FeatureExtractor::FeatureExtractor(const FeatureOptions& options) : options_(options) {
  require_option(options.rate > 0 && options.hop_samples > 0, "rate and hop are positive");
  require_option(options.frame_samples > 0 && options.frame_samples <= options.fft_size,
                 "a window has at least one sample, and at most fft_size");
  require_option(options.fft_size % 2 == 0, "fft_size is even");
  require_option(options.num_coefficients == 0 || options.mel,
                 "coefficients are made of mel filters");
  require_option(options.compression == Compression::kNone || options.floor > 0,
                 "the floor of a logarithm is positive");
  require_option(!options.has_energy || options.num_coefficients > 0,
                 "an energy takes the place of the first coefficient");
  const bool is_kaldi = options.dialect == Dialect::kKaldi;
  window_ =
      window_of(options.window, is_kaldi ? WindowSymmetry::kSymmetric : WindowSymmetry::kPeriodic,
                options.frame_samples);
  if (options.mel) mel_.emplace(*options.mel, options.rate, options.fft_size);
  if (options.num_coefficients > 0) {
    require_option(options.num_coefficients <= mel_->size(), "more coefficients than mel filters");
    cosines_ = cosine_table(options, mel_->size());
  }
}

int64_t FeatureExtractor::width() const {
  if (options_.num_coefficients > 0) return options_.num_coefficients;
  return mel_ ? mel_->size() : options_.fft_size / 2 + 1;
}

int64_t FeatureExtractor::num_frames(int64_t num_samples) const {
  const bool is_kaldi = options_.dialect == Dialect::kKaldi;
  const int64_t hop = options_.hop_samples;
  if (num_samples == 0) return 0;
  if (options_.covers_ends) return is_kaldi ? (num_samples + hop / 2) / hop : 1 + num_samples / hop;
  const int64_t whole = is_kaldi ? options_.frame_samples : options_.fft_size;
  return num_samples < whole ? 0 : 1 + (num_samples - whole) / hop;
}

/// What is done to the sound as a whole.
std::vector<float> FeatureExtractor::prepared(std::span<const float> samples,
                                              uint64_t dither_key) const {
  std::vector<float> sound(samples.begin(), samples.end());
  const auto scale = static_cast<float>(options_.scale);
  if (scale != 1) {
    for (float& sample : sound) sample *= scale;
  }
  if (options_.dither > 0) {
    RandomStream noise(dither_key);
    for (float& sample : sound) sample += static_cast<float>(options_.dither * noise.normal());
  }
  if (options_.preemphasis != 0 && options_.dialect == Dialect::kLibrosa) {
    emphasise(sound, static_cast<float>(options_.preemphasis), 0);
  }
  return sound;
}

/// Kaldi's work on a frame before its window. @return the log energy
float FeatureExtractor::finish_frame(std::span<float> frame) const {
  double sum = 0, energy = 0;
  for (const float sample : frame) sum += sample;
  const auto mean = static_cast<float>(sum / static_cast<double>(frame.size()));
  if (options_.removes_mean) {
    for (float& sample : frame) sample -= mean;
  }
  for (const float sample : frame) energy += static_cast<double>(sample) * sample;
  const auto factor = static_cast<float>(options_.preemphasis);
  if (factor != 0) emphasise(frame, factor, factor);
  return static_cast<float>(std::log(std::max(energy, options_.floor)));
}

/// Fills the samples of a frame, with its window. @return its log energy, with kKaldi
float FeatureExtractor::take_frame(std::span<const float> samples, int64_t frame,
                                   std::span<float> buffer) const {
  const bool is_kaldi = options_.dialect == Dialect::kKaldi;
  const int64_t hop = options_.hop_samples, width = options_.frame_samples;
  const auto size = static_cast<int64_t>(samples.size());
  const int64_t margin = is_kaldi ? 0 : (options_.fft_size - width) / 2;
  int64_t begin = frame * hop + margin;
  if (options_.covers_ends) begin += is_kaldi ? hop / 2 - width / 2 : -options_.fft_size / 2;
  const auto own = buffer.subspan(static_cast<size_t>(margin), static_cast<size_t>(width));
  if (begin >= 0 && begin + width <= size) {
    std::copy_n(samples.begin() + begin, width, own.begin());
  } else {
    for (int64_t i = 0; i < width; ++i) {
      const int64_t place = padded_place(begin + i, size, options_.padding);
      own[static_cast<size_t>(i)] = place < 0 ? 0.0F : samples[static_cast<size_t>(place)];
    }
  }
  const float energy = is_kaldi ? finish_frame(own) : 0.0F;
  for (size_t i = 0; i < own.size(); ++i) own[i] *= window_[i];
  return energy;
}

void FeatureExtractor::compress(std::span<float> values) const {
  const auto floor = static_cast<float>(options_.floor);
  switch (options_.compression) {
    case Compression::kNone:
      return;
    case Compression::kLogOfMax:
      for (float& value : values) value = std::log(std::max(value, floor));
      return;
    case Compression::kLogOfSum:
      for (float& value : values) value = std::log(value + floor);
      return;
    case Compression::kDecibel:
      for (float& value : values) value = 10 * std::log10(std::max(value, floor));
      return;
  }
}

/// Coefficients of one frame.
void FeatureExtractor::transform(std::span<const float> log_mels, float energy,
                                 std::span<float> row) const {
  for (size_t k = 0; k < row.size(); ++k) {
    const float* cosines = cosines_.data() + k * log_mels.size();
    float sum = 0;
    for (size_t m = 0; m < log_mels.size(); ++m) sum += cosines[m] * log_mels[m];
    row[k] = sum;
  }
  if (options_.has_energy) row[0] = energy;
}

Features FeatureExtractor::operator()(std::span<const float> samples, uint64_t dither_key) const {
  const int64_t frames = num_frames(static_cast<int64_t>(samples.size()));
  const int64_t energies = mel_ ? mel_->size() : options_.fft_size / 2 + 1;
  Features features{.width = energies,
                    .values = std::vector<float>(static_cast<size_t>(frames * energies))};
  if (frames == 0) return {.width = width(), .values = {}};
  const auto sound = prepared(samples, dither_key);
  RealFft fft(options_.fft_size);
  std::vector<float> buffer(static_cast<size_t>(options_.fft_size));
  std::vector<float> bins(static_cast<size_t>(fft.num_bins()));
  std::vector<float> log_energies;  // of frames
  for (int64_t f = 0; f < frames; ++f) {
    log_energies.push_back(take_frame(sound, f, buffer));
    const std::span<float> row(features.values.data() + f * energies,
                               static_cast<size_t>(energies));
    take_power(fft(buffer), options_.power, mel_ ? std::span<float>(bins) : row);
    if (mel_) mel_->apply(bins, row);
    compress(row);
  }
  if (options_.compression == Compression::kDecibel) {
    const float top = *std::max_element(features.values.begin(), features.values.end());
    const float least = top - static_cast<float>(options_.decibel_range);
    for (float& value : features.values) value = std::max(value, least);
  }
  if (options_.num_coefficients == 0) return features;
  Features coefficients{.width = width(),
                        .values = std::vector<float>(static_cast<size_t>(frames * width()))};
  for (int64_t f = 0; f < frames; ++f) {
    transform(features.frame(f), log_energies[static_cast<size_t>(f)],
              {coefficients.values.data() + f * width(), static_cast<size_t>(width())});
  }
  return coefficients;
}

}  // namespace stretto::audio
