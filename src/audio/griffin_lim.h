#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/feature_keys.h"
#include "audio/features.h"
#include "audio/griffin_lim_options.h"

/// Sounds from spectrograms.
namespace stretto::audio {

/// Griffin and Lim 1984, with the momentum of Perraudin et al. 2013 ("A fast Griffin-Lim
/// algorithm"); librosa.griffinlim() has the same steps. First phases are random.
/// @param magnitudes  [frames, fft_size / 2 + 1], not negative
/// @param frames      fft_size, frame_samples, hop_samples, window and edges of a librosa dialect;
///                    its filters are not looked at
/// @param options     iterations and momentum; magnitudes are taken as they are
/// @param seed        of the first phases
/// @return (frames - 1) * hop samples where frames cover the ends, else (frames - 1) * hop +
/// fft_size Throws std::invalid_argument for a width that is another one, or for the dialect of
/// Kaldi.
std::vector<float> griffin_lim(const Features& magnitudes, const FeatureOptions& frames,
                               const GriffinLimOptions& options, uint64_t seed);

/// How far the magnitudes of a sound are from those that were wanted, in dB:
/// 20 log10(|| |STFT(sound)| - magnitudes || / || magnitudes ||), Frobenius norms.
double spectral_convergence(std::span<const float> sound, const Features& magnitudes,
                            const FeatureOptions& frames);

/// From features back to a sound: takes normalisation and compression back, finds a spectrum that
/// explains the mel filters, and phases that explain the spectrum.
class FeatureInverter {
 public:
  /// Throws Error(kUsage) with inversion_obstacle(keys).
  FeatureInverter(const FeatureKeys& keys, const GriffinLimOptions& options);
  ~FeatureInverter();
  FeatureInverter(FeatureInverter&&) noexcept;
  FeatureInverter& operator=(FeatureInverter&&) noexcept;

  /// @param features  [frames, keys.width()]; not finite numbers count as silence
  /// @return samples at keys.rate
  std::vector<float> operator()(const Features& features, uint64_t seed = 0) const;

  /// The magnitudes alone: [frames, fft_size / 2 + 1].
  Features magnitudes(const Features& features) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// Why no sound can be made of these features, with the remedy; empty where one can: mfcc, the
/// dialect of Kaldi, bins that were cut off, normalisation by statistics of the sound.
std::string inversion_obstacle(const FeatureKeys& keys);

}  // namespace stretto::audio
