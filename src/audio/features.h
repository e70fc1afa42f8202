#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "audio/mel_filters.h"
#include "audio/windows.h"

/// Spectrograms, mel filter banks and MFCC, as two packages make them.
namespace stretto::audio {

class LaneFrames;
struct KnownSound;

/// The package whose conventions apply: where frames begin, and how each is processed. With
/// N = fft_size, W = frame_samples and H = hop_samples:
///
/// | | kLibrosa (0.10 and later) | kKaldi |
/// |---|---|---|
/// | frame f begins at | f H - N / 2, or f H | f H + H / 2 - W / 2, or f H |
/// | frames of n samples | 1 + n / H, or 1 + (n - N) / H | (n + H / 2) / H, or 1 + (n - W) / H |
/// | window | periodic, in the middle of the N samples | symmetric, zeros behind it |
/// | pre-emphasis | of the sound; its first sample stays | of each frame, x_0 -= a x_0 |
/// | mean | stays | of each frame is taken off, with `removes_mean` |
/// | lifter of coefficient k | 1 + L/2 sin(pi (k + 1) / L) | 1 + L/2 sin(pi k / L) |
///
/// The first of two frame positions is that with `covers_ends`: librosa's center=True, Kaldi's
/// snip_edges=false.
enum class Dialect : uint8_t { kLibrosa, kKaldi };

/// How a sound is padded where frames reach beyond its ends.
enum class Padding : uint8_t {
  kZeros,      ///< librosa's pad_mode="constant", its default
  kReflect,    ///< the last sample stands once: torch.stft, NVIDIA's Tacotron 2
  kSymmetric,  ///< the last sample stands twice: Kaldi
};

/// How energies x are compressed, with a floor e.
enum class Compression : uint8_t {
  kNone,
  kLogOfMax,  ///< ln max(x, e)
  kLogOfSum,  ///< ln(x + e)
  kDecibel,   ///< 10 log10 max(x, e), and at most `decibel_range` below the largest of the sound
};

struct FeatureOptions {
  Dialect dialect = Dialect::kLibrosa;
  int64_t rate = 16000;         ///< of the samples, in Hz
  int64_t frame_samples = 400;  ///< W, of the window
  int64_t hop_samples = 160;    ///< H
  int64_t fft_size = 512;       ///< N, even, at least W
  Window window = Window::kHann;
  bool covers_ends = true;
  Padding padding = Padding::kZeros;

  double scale = 1;        ///< of the samples; 32768 where Kaldi's numbers are wanted
  double dither = 0;       ///< standard deviation of the Gaussian noise added after scaling
  double preemphasis = 0;  ///< a of x_t - a x_{t-1}
  bool removes_mean = false;
  double power = 2;  ///< exponent of the magnitudes: 2 = power spectrum, 1 = magnitudes

  std::optional<MelOptions> mel = MelOptions{};  ///< unset: the spectrum itself, N / 2 + 1 bins
  int64_t num_bins = 0;  ///< of the spectrum itself: how many are kept, from 0 Hz on; 0: all
  Compression compression = Compression::kLogOfMax;
  double floor = 1e-10;       ///< e of Compression
  double decibel_range = 80;  ///< in dB, of Compression::kDecibel

  int64_t num_coefficients = 0;  ///< of a discrete cosine transform (type 2, orthonormal); 0: none
  double lifter = 0;             ///< L; 0: none
  /// The first coefficient becomes the log energy of the frame before pre-emphasis and window.
  bool has_energy = false;
};

/// The defaults of librosa.feature.melspectrogram() and mfcc().
FeatureOptions librosa_mel(int64_t rate);
FeatureOptions librosa_mfcc(int64_t rate);
/// Those of Kaldi's compute-fbank-feats and compute-mfcc-feats, but without dither.
FeatureOptions kaldi_fbank(int64_t rate);
FeatureOptions kaldi_mfcc(int64_t rate);

/// Rows of features, one for each frame.
struct Features {
  int64_t width = 0;
  std::vector<float> values;  ///< [frames, width]

  int64_t num_frames() const {
    return width == 0 ? 0 : static_cast<int64_t>(values.size()) / width;
  }
  std::span<const float> frame(int64_t number) const {
    return {values.data() + number * width, static_cast<size_t>(width)};
  }
};

/// Makes features of sounds. Safe to use from several threads; the features of a sound depend on
/// nothing else.
class FeatureExtractor {
 public:
  /// Throws std::invalid_argument for options that contradict each other.
  explicit FeatureExtractor(const FeatureOptions& options);

  const FeatureOptions& options() const { return options_; }
  /// Numbers of a frame: coefficients, else mel bands, else bins.
  int64_t width() const;
  /// Frames of a sound with so many samples; 0 of an empty one.
  int64_t num_frames(int64_t num_samples) const;
  /// @param samples     of one channel, at the rate of the options
  /// @param dither_key  seed of the noise: a function of run.seed, epoch and sample
  /// @return [num_frames(samples.size()), width()]
  Features operator()(std::span<const float> samples, uint64_t dither_key = 0) const;

  /// The three steps of it, for sounds that arrive in pieces (audio/feature_stream.h): scale,
  /// dither and the pre-emphasis of librosa, in place.
  /// @param before  the last sample of the piece before, as this function returned it; else 0
  float prepare(std::span<float> samples, uint64_t dither_key, float before = 0) const;
  /// Energies of frames first … first + count - 1 of a prepared sound, compressed but for the range
  /// of decibels: [count, bands or bins], with the log energies of frames where options have them.
  Features energies(const KnownSound& prepared, int64_t first, int64_t count,
                    std::vector<float>& log_energies) const;
  /// Decibels and coefficients.
  Features finished(Features energies, std::span<const float> log_energies) const;

  const LaneFrames& frames() const { return *frames_; }

 private:
  void check() const;
  void compress(float* rows, int64_t count) const;
  void add_block(const float* rows, int64_t count, std::span<float> values) const;

  FeatureOptions options_;
  std::shared_ptr<const LaneFrames> frames_;
  std::optional<MelFilters> mel_;
  std::vector<float> cosines_;  ///< [mels, num_coefficients], with the lifter
};

}  // namespace stretto::audio
