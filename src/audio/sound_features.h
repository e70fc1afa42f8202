#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/augment_keys.h"
#include "audio/feature_keys.h"
#include "audio/features.h"

namespace stretto::audio {

/// From the samples of an utterance to the rows that a model sees. Safe to use from several
/// threads. Nothing depends on the batch, the thread or the process.
///
///     const SoundFeatures sounds(keys, augment, run_seed);
///     Features rows = sounds.training(set.read(i, sounds.rate()), epoch, i);
class SoundFeatures {
 public:
  /// For validation and inference.
  explicit SoundFeatures(const FeatureKeys& keys);
  /// For training too. Reads the noises and impulse responses.
  /// @param seed  of the run
  /// Throws Error(kBadData) for a file that cannot be read or is silent, std::invalid_argument for
  /// keys that contradict each other.
  SoundFeatures(const FeatureKeys& keys, const AugmentKeys& augment, uint64_t seed);
  ~SoundFeatures();
  SoundFeatures(SoundFeatures&&) noexcept;
  SoundFeatures& operator=(SoundFeatures&&) noexcept;

  const FeatureKeys& keys() const;
  int64_t rate() const { return keys().rate; }
  int64_t width() const;
  /// Frames of so many samples, without augmentation.
  int64_t num_frames(int64_t num_samples) const;
  /// Those that are left at the fastest speed of training.
  int64_t fewest_frames(int64_t num_samples) const;
  /// The middle of a frame, in seconds from the beginning of the sound.
  double seconds_at(int64_t frame) const;

  /// Without anything random: validation and inference.
  /// @param samples  of one channel at rate()
  /// @return [num_frames(samples.size()), width()]
  Features operator()(std::span<const float> samples) const;
  /// With dither and augmentation: a function of (seed, epoch, sample) and of the samples.
  Features training(std::span<const float> samples, int64_t epoch, int64_t sample) const;
  /// The augmented sound itself, for listening.
  std::vector<float> training_sound(std::span<const float> samples, int64_t epoch,
                                    int64_t sample) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace stretto::audio
