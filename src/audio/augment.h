#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audio/features.h"
#include "base/random.h"

/// Augmentation of sounds and features. A stream of random numbers is a function of (seed, epoch,
/// sample) (streams::augmentation), so that a sound is the same one whenever and wherever it is
/// loaded.
namespace stretto::audio {

/// A sound that is played faster (factor above 1) or slower: pitch changes too (Ko et al. 2015).
/// The factor is rounded to what makes a whole rate.
std::vector<float> at_speed(std::span<const float> samples, int64_t rate, double factor);

/// Adds white noise of this level: its deviation is 10^(decibels / 20), where 1 is full scale.
void add_noise(std::span<float> samples, double decibels, RandomStream& random);

/// SpecAugment without warping (Park et al. 2019).
struct MaskOptions {
  int64_t num_feature_masks = 0, most_features = 27;  ///< F: widths are drawn from 0 … F
  int64_t num_frame_masks = 0, most_frames = 100;     ///< T
  double most_frame_share = 1;  ///< p: a mask of frames covers at most this share of the sound
  float value = 0;              ///< of what is hidden: the mean of normalised features
};
void mask(Features& features, const MaskOptions& options, RandomStream& random);

}  // namespace stretto::audio
