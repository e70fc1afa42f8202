#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "audio/features.h"
#include "base/random.h"

/// Augmentation of sounds and features. A stream of random numbers is a function of (seed, epoch,
/// sample) (streams::augmentation), so that a sound is the same one whenever and wherever it is
/// loaded.
namespace stretto::audio {

/// Speed perturbation (Ko et al. 2015): the sound is played faster (factor above 1) or slower,
/// which changes its pitch too. The result has about n / factor samples, at the same rate. The
/// factor is rounded so that rate * factor is a whole number of Hz.
std::vector<float> at_speed(std::span<const float> samples, int64_t rate, double factor);

/// Adds white Gaussian noise of this level in dB below full scale: its standard deviation is
/// 10^(decibels / 20).
void add_noise(std::span<float> samples, double decibels, RandomStream& random);

/// Adds another sound at a ratio of signal to noise of this many dB, of the means of their squares.
/// It begins at its sample `begin`, and begins anew where it ends. Silence stays as it is, and so
/// does a sound to which silence is added.
void add_sound(std::span<float> samples, std::span<const float> noise, size_t begin,
               double decibels);

/// SpecAugment without warping (Park et al. 2019).
struct MaskOptions {
  int64_t num_feature_masks = 0, most_features = 27;  ///< F: widths are drawn from 0 … F
  int64_t num_frame_masks = 0, most_frames = 100;     ///< T: likewise, in frames
  double most_frame_share = 1;  ///< p: a mask of frames covers at most this share of the sound
  float value = 0;              ///< of masked features: 0 is the mean of normalised ones
};
/// Draws the masks, and writes `value` over what they cover.
void mask(Features& features, const MaskOptions& options, RandomStream& random);

}  // namespace stretto::audio
