#include "audio/griffin_lim.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "audio/frame_loops.h"
#include "audio/lane_frames.h"
#include "base/random_streams.h"

namespace stretto::audio {
namespace {

constexpr float kLeastSquareSum = 1e-4F;  // of windows over a sample; below it, a sample fades

/// Spectra of all frames of a sound, in blocks of as many frames as there are lanes.
class Spectrogram {
 public:
  Spectrogram(const FeatureOptions& options, int64_t num_frames)
      : frames_(options),
        num_frames_(num_frames),
        num_samples_(samples_of_frames(options, num_frames)),
        work_(frames_.workspace()),
        square_sums_(static_cast<size_t>(num_samples_)) {
    for (int64_t f = 0; f < num_frames_; ++f) {
      add_window(f, square_sums_.data(), [&](int64_t i) {
        const float factor = frames_.window()[static_cast<size_t>(i)];
        return factor * factor;
      });
    }
    for (float& sum : square_sums_) sum = std::max(sum, kLeastSquareSum);
  }

  int64_t num_samples() const { return num_samples_; }
  int64_t num_frames() const { return num_frames_; }
  int64_t num_bins() const { return frames_.num_bins(); }
  int64_t lanes() const { return frames_.lanes(); }
  int64_t num_blocks() const { return (num_frames_ + lanes() - 1) / lanes(); }
  const FrameLoops& loops() const { return frames_.loops(); }
  /// Numbers of a block: bins, or twice as many for complex ones.
  int64_t block_size() const { return num_bins() * lanes(); }

  /// @param spectra  [blocks, bins, 2, lanes]
  void analyse(std::span<const float> sound, float* spectra) {
    for (int64_t block = 0; block < num_blocks(); ++block) {
      const int64_t first = block * lanes();
      frames_.take(KnownSound::whole(sound), first, std::min(lanes(), num_frames_ - first), work_,
                   nullptr);
      frames_.spectra(work_, spectra + 2 * block * block_size());
    }
  }

  /// The sound whose windowed frames are nearest to these spectra (Griffin and Lim, equation 6).
  void synthesise(const float* spectra, std::span<float> sound) {
    std::fill(sound.begin(), sound.end(), 0.0F);
    for (int64_t block = 0; block < num_blocks(); ++block) {
      frames_.samples(spectra + 2 * block * block_size(), work_);
      const int64_t first = block * lanes();
      for (int64_t f = first; f < std::min(first + lanes(), num_frames_); ++f) {
        const float* column = work_.rows.data() + frames_.margin() * lanes() + (f - first);
        add_window(f, sound.data(), [&](int64_t i) {
          return frames_.window()[static_cast<size_t>(i)] * column[i * lanes()];
        });
      }
    }
    for (size_t i = 0; i < sound.size(); ++i) sound[i] /= square_sums_[i];
  }

 private:
  static int64_t samples_of_frames(const FeatureOptions& options, int64_t num_frames) {
    if (num_frames == 0) return 0;
    return (num_frames - 1) * options.hop_samples + (options.covers_ends ? 0 : options.fft_size);
  }

  /// Adds what belongs to the samples of a frame, as far as they are within the sound.
  template <class Value>
  void add_window(int64_t frame, float* sound, const Value& value) const {
    const int64_t begin = frames_.begin_of(frame);
    const int64_t end = std::min(frames_.frame_samples(), num_samples_ - begin);
    for (int64_t i = std::max<int64_t>(-begin, 0); i < end; ++i) sound[begin + i] += value(i);
  }

  LaneFrames frames_;
  int64_t num_frames_, num_samples_;
  LaneFrames::Workspace work_;
  std::vector<float> square_sums_;  ///< [samples]: of the squares of all windows over a sample
};

void require_widths(const Features& magnitudes, const FeatureOptions& frames) {
  if (frames.dialect != Dialect::kLibrosa) {
    throw std::invalid_argument("griffin_lim: frames of the librosa dialect");
  }
  if (magnitudes.width != frames.fft_size / 2 + 1) {
    throw std::invalid_argument("griffin_lim: " + std::to_string(magnitudes.width) +
                                " magnitudes, and a transform of " +
                                std::to_string(frames.fft_size / 2 + 1) + " bins");
  }
}

/// [blocks, bins, lanes]; lanes without a frame are silent.
LaneBuffer in_lanes(const Features& magnitudes, const Spectrogram& spectrogram) {
  LaneBuffer blocks(spectrogram.num_blocks() * spectrogram.block_size());
  const int64_t lanes = spectrogram.lanes();
  for (int64_t f = 0; f < magnitudes.num_frames(); ++f) {
    float* block = blocks.data() + f / lanes * spectrogram.block_size() + f % lanes;
    const auto frame = magnitudes.frame(f);
    for (int64_t bin = 0; bin < magnitudes.width; ++bin) {
      block[bin * lanes] = frame[static_cast<size_t>(bin)];
    }
  }
  return blocks;
}

/// Magnitudes with phases drawn in the order of frames and bins.
LaneBuffer with_random_phases(const Features& magnitudes, const Spectrogram& spectrogram,
                              uint64_t seed) {
  LaneBuffer blocks(2 * spectrogram.num_blocks() * spectrogram.block_size());
  const int64_t lanes = spectrogram.lanes();
  RandomStream random(mix64(seed, streams::kFirstPhases));
  for (int64_t f = 0; f < magnitudes.num_frames(); ++f) {
    float* block = blocks.data() + 2 * (f / lanes) * spectrogram.block_size() + f % lanes;
    const auto frame = magnitudes.frame(f);
    for (int64_t bin = 0; bin < magnitudes.width; ++bin) {
      const double angle = 2 * std::numbers::pi * random.uniform();
      const auto size = static_cast<double>(frame[static_cast<size_t>(bin)]);
      block[2 * bin * lanes] = static_cast<float>(size * std::cos(angle));
      block[(2 * bin + 1) * lanes] = static_cast<float>(size * std::sin(angle));
    }
  }
  return blocks;
}

}  // namespace

std::vector<float> griffin_lim(const Features& magnitudes, const FeatureOptions& frames,
                               const GriffinLimOptions& options, uint64_t seed) {
  require_widths(magnitudes, frames);
  Spectrogram spectrogram(frames, magnitudes.num_frames());
  std::vector<float> sound(static_cast<size_t>(spectrogram.num_samples()));
  if (sound.empty()) return sound;
  const int64_t blocks = spectrogram.num_blocks(), block_size = spectrogram.block_size();
  const LaneBuffer wanted = in_lanes(magnitudes, spectrogram);
  LaneBuffer spectra = with_random_phases(magnitudes, spectrogram, seed);
  LaneBuffer rebuilt(2 * blocks * block_size), before(2 * blocks * block_size);
  const auto share =
      static_cast<float>(options.griffin_lim_momentum / (1 + options.griffin_lim_momentum));
  for (int64_t i = 0; i < options.griffin_lim_iterations; ++i) {
    spectrogram.synthesise(spectra.data(), sound);
    std::swap(rebuilt, before);
    spectrogram.analyse(sound, rebuilt.data());
    spectrogram.loops().turn(rebuilt.data(), before.data(), share, wanted.data(),
                             blocks * spectrogram.num_bins(), spectra.data());
  }
  spectrogram.synthesise(spectra.data(), sound);
  return sound;
}

double spectral_convergence(std::span<const float> sound, const Features& magnitudes,
                            const FeatureOptions& frames) {
  require_widths(magnitudes, frames);
  Spectrogram spectrogram(frames, magnitudes.num_frames());
  LaneBuffer spectra(2 * spectrogram.num_blocks() * spectrogram.block_size());
  if (sound.empty()) return 0;
  spectrogram.analyse(sound, spectra.data());
  const int64_t lanes = spectrogram.lanes();
  double difference = 0, size = 0;
  for (int64_t f = 0; f < magnitudes.num_frames(); ++f) {
    const float* block = spectra.data() + 2 * (f / lanes) * spectrogram.block_size() + f % lanes;
    for (int64_t bin = 0; bin < magnitudes.width; ++bin) {
      const double wanted = magnitudes.frame(f)[static_cast<size_t>(bin)];
      const double got = std::hypot(static_cast<double>(block[2 * bin * lanes]),
                                    static_cast<double>(block[(2 * bin + 1) * lanes]));
      difference += (got - wanted) * (got - wanted);
      size += wanted * wanted;
    }
  }
  if (difference == 0) return -std::numeric_limits<double>::infinity();
  return 10 * std::log10(difference / size);
}

}  // namespace stretto::audio
