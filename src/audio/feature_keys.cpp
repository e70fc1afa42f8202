#include "audio/feature_keys.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/text.h"

namespace stretto::audio {
namespace {

constexpr double kLibrosaFloor = 1e-10;
constexpr double kSixteenBits = 32768;  // of 16 bits, Kaldi's scale
// 0.07 s of 100 Hz are 7 samples, though 0.07 * 100 is below 7 in doubles.
constexpr double kRounding = 1e-6;

bool is_kaldi(const FeatureKeys& keys) {
  return keys.dialect == "kaldi";
}

bool has_mels(const FeatureKeys& keys) {
  return keys.kind != "spectrogram";
}

int64_t samples_of(double seconds, int64_t rate) {
  return static_cast<int64_t>(seconds * static_cast<double>(rate) + kRounding);
}

int64_t fft_size_of(const FeatureKeys& keys) {
  if (keys.fft_size > 0) return keys.fft_size;
  const auto window = static_cast<uint64_t>(std::max<int64_t>(keys.window_samples(), 2));
  return static_cast<int64_t>(std::bit_ceil(window));
}

Window window_kind(const FeatureKeys& keys) {
  if (keys.window == "dialect") return is_kaldi(keys) ? Window::kPovey : Window::kHann;
  if (keys.window == "hann") return Window::kHann;
  if (keys.window == "hamming") return Window::kHamming;
  if (keys.window == "blackman") return Window::kBlackman;
  return keys.window == "povey" ? Window::kPovey : Window::kRectangular;
}

Padding padding_of(const FeatureKeys& keys) {
  if (keys.padding == "dialect") return is_kaldi(keys) ? Padding::kSymmetric : Padding::kZeros;
  if (keys.padding == "zeros") return Padding::kZeros;
  return keys.padding == "reflect" ? Padding::kReflect : Padding::kSymmetric;
}

Compression compression_of(const FeatureKeys& keys) {
  if (keys.compression == "log") return Compression::kLogOfMax;
  if (keys.compression == "log_sum") return Compression::kLogOfSum;
  return keys.compression == "decibel" ? Compression::kDecibel : Compression::kNone;
}

MelOptions mels_of(const FeatureKeys& keys) {
  const bool kaldi = is_kaldi(keys);
  const bool is_htk = keys.mel_scale == "dialect" ? kaldi : keys.mel_scale == "htk";
  return {.num_mels = keys.num_mels,
          .low_hz = keys.low_hz,
          .high_hz = keys.high_hz,
          .scale = is_htk ? MelScale::kHtk : MelScale::kSlaney,
          .triangles = kaldi ? MelTriangles::kMel : MelTriangles::kHertz,
          .has_unit_area = keys.mel_norm == "dialect" ? !kaldi : keys.mel_norm == "area"};
}

/// Collects conflicts of keys of one section.
class Conflicts {
 public:
  explicit Conflicts(std::string section) : section_(std::move(section)) {}

  std::string key(const std::string& name) const { return section_ + "." + name; }
  void add(const std::vector<std::string>& names, std::string what, std::string hint) {
    KeyConflict conflict;
    for (const std::string& name : names) conflict.keys.push_back(key(name));
    conflict.what = std::move(what);
    conflict.hint = std::move(hint);
    found_.push_back(std::move(conflict));
  }
  std::vector<KeyConflict> take() { return std::move(found_); }

 private:
  std::string section_;
  std::vector<KeyConflict> found_;
};

void check_frames(const FeatureKeys& keys, Conflicts& conflicts) {
  const int64_t window = keys.window_samples(), fft_size = fft_size_of(keys);
  if (window < 1) {
    conflicts.add({"window_seconds", "rate"}, "is less than a sample",
                  "make it longer, such as 0.025");
  }
  if (keys.hop_samples() < 1) {
    conflicts.add({"hop_seconds", "rate"}, "is less than a sample", "make it longer, such as 0.01");
  }
  if (keys.fft_size > 0 && keys.fft_size < window) {
    conflicts.add(
        {"fft_size", "window_seconds"},
        "is smaller than a window, which has " + counted(window, "sample"),
        "make it " + std::to_string(std::bit_ceil(static_cast<uint64_t>(window))) + ", or 0");
  }
  if (fft_size % 2 != 0) {
    conflicts.add({"fft_size"}, "is odd", "make it even");
  }
  if (keys.kind == "spectrogram" && keys.num_bins > fft_size / 2 + 1) {
    conflicts.add({"num_bins", "fft_size"},
                  "is more than the " + std::to_string(fft_size / 2 + 1) + " bins of the spectrum",
                  "keep fewer, or all with 0");
  }
}

void check_mels(const FeatureKeys& keys, Conflicts& conflicts) {
  const double nyquist = static_cast<double>(keys.rate) / 2;
  const double high = keys.high_hz > 0 ? keys.high_hz : nyquist + keys.high_hz;
  if (high > nyquist) {
    conflicts.add({"high_hz", "rate"}, "is above half the rate, " + shortest(nyquist) + " Hz",
                  "make it 0, which is half the rate");
  } else if (keys.low_hz >= high) {
    conflicts.add({"low_hz", "high_hz"},
                  "is not below the end of the filters, " + shortest(high) + " Hz",
                  "leave a range between low_hz and high_hz");
  }
  if (keys.kind != "mfcc") return;
  if (keys.num_coefficients > keys.num_mels) {
    conflicts.add({"num_coefficients", "num_mels"},
                  "is more than the " + counted(keys.num_mels, "mel filter"),
                  "take fewer coefficients");
  }
  if (keys.use_energy && !is_kaldi(keys)) {
    conflicts.add({"use_energy", "dialect"}, "is of the kaldi dialect alone",
                  "leave it false, or choose kaldi");
  }
}

void check_statistics(const FeatureKeys& keys, const char* name, const std::vector<double>& numbers,
                      Conflicts& conflicts) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count == 1 || count == keys.width()) return;
  conflicts.add({name, "normalise"}, "has " + counted(count, "number"),
                "give one number, or " + std::to_string(keys.width()) + ", one for each feature");
}

}  // namespace

int64_t FeatureKeys::window_samples() const {
  return samples_of(window_seconds, rate);
}

int64_t FeatureKeys::hop_samples() const {
  return samples_of(hop_seconds, rate);
}

int64_t FeatureKeys::width() const {
  if (kind == "mfcc") return num_coefficients;
  if (kind == "log_mel") return num_mels;
  return num_bins > 0 ? num_bins : fft_size_of(*this) / 2 + 1;
}

FeatureOptions FeatureKeys::options() const {
  const auto conflicts = feature_conflicts(*this, "features");
  if (!conflicts.empty()) {
    throw std::invalid_argument(conflicts.front().keys.front() + " " + conflicts.front().what);
  }
  const bool kaldi = is_kaldi(*this);
  FeatureOptions result;
  result.dialect = kaldi ? Dialect::kKaldi : Dialect::kLibrosa;
  result.rate = rate;
  result.frame_samples = window_samples();
  result.hop_samples = hop_samples();
  result.fft_size = fft_size_of(*this);
  result.window = window_kind(*this);
  result.covers_ends = edges == "cover";
  result.padding = padding_of(*this);
  result.scale = kaldi ? kSixteenBits : 1;
  result.dither = dither;
  result.preemphasis = preemphasis;
  result.removes_mean = kaldi;
  result.power = power;
  result.mel = has_mels(*this) ? std::optional(mels_of(*this)) : std::nullopt;
  result.num_bins = has_mels(*this) ? 0 : num_bins;
  result.compression = compression_of(*this);
  const double least = kaldi ? double{std::numeric_limits<float>::epsilon()} : kLibrosaFloor;
  result.floor = floor > 0 ? floor : least;
  result.decibel_range = decibel_range;
  result.num_coefficients = kind == "mfcc" ? num_coefficients : 0;
  result.lifter = kind == "mfcc" ? lifter : 0;
  result.has_energy = kind == "mfcc" && use_energy;
  return result;
}

std::vector<KeyConflict> feature_conflicts(const FeatureKeys& keys, const std::string& section) {
  Conflicts conflicts(section);
  check_frames(keys, conflicts);
  if (has_mels(keys)) check_mels(keys, conflicts);
  if (keys.normalise == "fixed") {
    check_statistics(keys, "mean", keys.mean, conflicts);
    check_statistics(keys, "std", keys.std, conflicts);
  }
  return conflicts.take();
}

}  // namespace stretto::audio
