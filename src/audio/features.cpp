#include "audio/features.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "audio/lane_frames.h"

namespace stretto::audio {
namespace {

constexpr double kTenMs = 0.01, kTwentyFiveMs = 0.025;

void require_option(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("features: ") + what);
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

/// [num_inputs, num_coefficients]
std::vector<float> cosine_table(const FeatureOptions& options, int64_t num_inputs) {
  std::vector<float> table;
  const auto count = static_cast<double>(num_inputs);
  for (int64_t m = 0; m < num_inputs; ++m) {
    for (int64_t k = 0; k < options.num_coefficients; ++k) {
      const double scale = lifter_at(options, k) * std::sqrt((k == 0 ? 1.0 : 2.0) / count);
      const double angle =
          std::numbers::pi * static_cast<double>(k) * (static_cast<double>(m) + 0.5) / count;
      table.push_back(static_cast<float>(scale * std::cos(angle)));
    }
  }
  return table;
}

/// Exponents other than 2, of power spectra.
void raise(const FrameLoops& loops, double power, float* bins, int64_t count) {
  if (power == 2) return;
  if (power == 1) return loops.roots(bins, count);
  for (int64_t i = 0; i < count * loops.lanes; ++i) {
    bins[i] = static_cast<float>(std::pow(static_cast<double>(bins[i]), power / 2));
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
  check();
  frames_ = std::make_shared<const LaneFrames>(options);
  if (options.mel) mel_.emplace(*options.mel, options.rate, options.fft_size);
  if (options.num_coefficients > 0) {
    require_option(options.num_coefficients <= mel_->size(), "more coefficients than mel filters");
    cosines_ = cosine_table(options, mel_->size());
  }
}

void FeatureExtractor::check() const {
  const FeatureOptions& options = options_;
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
  require_option(!options.has_energy || options.dialect == Dialect::kKaldi,
                 "only Kaldi's frames have an energy");
  require_option(options.num_bins >= 0 && options.num_bins <= options.fft_size / 2 + 1,
                 "more bins than the spectrum has");
}

int64_t FeatureExtractor::width() const {
  if (options_.num_coefficients > 0) return options_.num_coefficients;
  if (mel_) return mel_->size();
  return options_.num_bins > 0 ? options_.num_bins : options_.fft_size / 2 + 1;
}

int64_t FeatureExtractor::num_frames(int64_t num_samples) const {
  const bool is_kaldi = options_.dialect == Dialect::kKaldi;
  const int64_t hop = options_.hop_samples;
  if (num_samples == 0) return 0;
  if (options_.covers_ends) return is_kaldi ? (num_samples + hop / 2) / hop : 1 + num_samples / hop;
  const int64_t whole = is_kaldi ? options_.frame_samples : options_.fft_size;
  return num_samples < whole ? 0 : 1 + (num_samples - whole) / hop;
}

float FeatureExtractor::prepare(std::span<float> samples, uint64_t dither_key, float before) const {
  if (samples.empty()) return before;
  const auto scale = static_cast<float>(options_.scale);
  if (scale != 1) {
    for (float& sample : samples) sample *= scale;
  }
  if (options_.dither > 0) {
    frames_->loops().noise(dither_key, std::ssize(samples), static_cast<float>(options_.dither),
                           samples.data());
  }
  const float last = samples.back();
  if (options_.preemphasis != 0 && options_.dialect == Dialect::kLibrosa) {
    const auto factor = static_cast<float>(options_.preemphasis);
    for (size_t i = samples.size() - 1; i > 0; --i) samples[i] -= factor * samples[i - 1];
    samples[0] -= factor * before;
  }
  return last;
}

void FeatureExtractor::compress(float* rows, int64_t count) const {
  const auto floor = static_cast<float>(options_.floor);
  const bool adds = options_.compression == Compression::kLogOfSum;
  const bool is_decibel = options_.compression == Compression::kDecibel;
  if (options_.compression == Compression::kNone) return;
  frames_->loops().logarithms(rows, count, floor, adds,
                              is_decibel ? static_cast<float>(10 / std::numbers::ln10) : 1.0F);
}

/// Appends the rows of a block: [count, width] from [width, lanes].
void FeatureExtractor::add_block(const float* rows, int64_t count, std::span<float> values) const {
  const int64_t lanes = frames_->lanes(), width = std::ssize(values) / count;
  for (int64_t f = 0; f < count; ++f) {
    float* row = values.data() + f * width;
    for (int64_t i = 0; i < width; ++i) row[i] = rows[i * lanes + f];
  }
}

Features FeatureExtractor::energies(const KnownSound& prepared, int64_t first, int64_t count,
                                    std::vector<float>& log_energies) const {
  const int64_t bins_kept = options_.num_bins > 0 ? options_.num_bins : frames_->num_bins();
  const int64_t width = mel_ ? mel_->size() : bins_kept, lanes = frames_->lanes();
  Features result{.width = width, .values = {}};
  result.values.resize(static_cast<size_t>(count * width));
  if (count == 0) return result;
  auto work = frames_->workspace();
  LaneBuffer bins(frames_->num_bins() * lanes), bands(width * lanes), squares(lanes);
  for (int64_t done = 0; done < count; done += lanes) {
    const int64_t block = std::min(lanes, count - done);
    frames_->take(prepared, first + done, block, work, squares.data());
    frames_->powers(work, bins.data());
    raise(frames_->loops(), options_.power, bins.data(), mel_ ? frames_->num_bins() : width);
    if (mel_) frames_->loops().filter(bins.data(), mel_->filters(), bands.data());
    float* rows = mel_ ? bands.data() : bins.data();
    compress(rows, width);
    add_block(rows, block,
              std::span<float>(result.values)
                  .subspan(static_cast<size_t>(done * width), static_cast<size_t>(block * width)));
    for (int64_t f = 0; options_.has_energy && f < block; ++f) {
      const double energy = std::max<double>(squares.data()[f], options_.floor);
      log_energies.push_back(static_cast<float>(std::log(energy)));
    }
  }
  return result;
}

Features FeatureExtractor::finished(Features energies, std::span<const float> log_energies) const {
  if (options_.compression == Compression::kDecibel && !energies.values.empty()) {
    const float top = *std::max_element(energies.values.begin(), energies.values.end());
    const float least = top - static_cast<float>(options_.decibel_range);
    for (float& value : energies.values) value = std::max(value, least);
  }
  if (options_.num_coefficients == 0) return energies;
  const int64_t frames = energies.num_frames();
  Features result{.width = width(), .values = {}};
  result.values.resize(static_cast<size_t>(frames * width()));
  for (int64_t f = 0; f < frames; ++f) {
    const auto bands = energies.frame(f);
    float* row = result.values.data() + f * width();
    for (size_t m = 0; m < bands.size(); ++m) {
      const float* cosines = cosines_.data() + static_cast<int64_t>(m) * width();
      for (int64_t k = 0; k < width(); ++k) row[k] += cosines[k] * bands[m];
    }
    if (options_.has_energy) row[0] = log_energies[static_cast<size_t>(f)];
  }
  return result;
}

Features FeatureExtractor::operator()(std::span<const float> samples, uint64_t dither_key) const {
  const int64_t frames = num_frames(std::ssize(samples));
  if (frames == 0) return {.width = width(), .values = {}};
  std::vector<float> sound(samples.begin(), samples.end());
  prepare(sound, dither_key);
  std::vector<float> log_energies;
  Features bands = energies(KnownSound::whole(sound), 0, frames, log_energies);
  return finished(std::move(bands), log_energies);
}

}  // namespace stretto::audio
