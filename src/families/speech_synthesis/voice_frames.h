#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/features.h"
#include "audio/griffin_lim.h"
#include "audio/sound_features.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "models/synthesis/synthesis_options.h"

/// From a clip to the frames that a model learns to write, and from frames to a sound; no libtorch.
namespace stretto::experiment {

/// What a frame is made of. `[features]` must be sound.
models::FrameParts frame_parts_of(const SpeechSynthesisOptions& own);
/// `[features]` without the mel filters: the magnitudes of the same frames.
audio::FeatureKeys magnitude_keys(const SynthesisFeatureKeys& keys);

/// Safe to use from several threads.
class VoiceFrames {
 public:
  /// @param seed  of the run, for dither
  VoiceFrames(const SpeechSynthesisOptions& own, uint64_t seed);

  int64_t rate() const { return mel_.rate(); }
  const models::FrameParts& parts() const { return parts_; }

  /// The parts of a frame side by side: [frames, parts().width()], of a clip without the silence at
  /// its ends. Nothing random.
  audio::Features operator()(std::span<const float> samples) const;
  /// The same with dither: a function of (seed, epoch, sample).
  audio::Features training(std::span<const float> samples, int64_t epoch, int64_t sample) const;
  /// Frames of a sound whose style is wanted: [frames, parts().decoder_width()].
  audio::Features style(std::span<const float> samples) const;

 private:
  std::span<const float> trimmed(std::span<const float> samples) const;

  const SynthesisFeatureKeys keys_;
  const models::FrameParts parts_;
  audio::SoundFeatures mel_;
  std::unique_ptr<audio::SoundFeatures> magnitude_;  ///< null where the model writes none
};

/// Sounds of frames, by Griffin-Lim: from magnitudes where the model writes them, else from mel
/// bands. Safe to use from several threads.
class FrameSounds {
 public:
  /// Throws Error(kUsage) for features that no sound can be made of.
  explicit FrameSounds(const SpeechSynthesisOptions& own);

  int64_t rate() const { return rate_; }
  /// @param frames  [frames, FrameParts::width()]
  /// @param seed    of the first phases
  std::vector<float> operator()(const audio::Features& frames, uint64_t seed) const;

 private:
  const models::FrameParts parts_;
  const int64_t rate_;
  audio::FeatureInverter inverter_;
};

/// Columns [begin, begin + width) of each frame.
audio::Features part_of_frames(const audio::Features& frames, int64_t begin, int64_t width);

}  // namespace stretto::experiment
