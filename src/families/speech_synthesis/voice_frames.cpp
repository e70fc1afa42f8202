#include "families/speech_synthesis/voice_frames.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "audio/augment_keys.h"
#include "families/speech_synthesis/trim_silence.h"

namespace stretto::experiment {
namespace {

// Of both, which are of one sound and have equally many frames; mel bands first.
audio::Features side_by_side(const audio::Features& mel, const audio::Features& magnitude) {
  audio::Features both{.width = mel.width + magnitude.width, .values = {}};
  const int64_t frames = std::min(mel.num_frames(), magnitude.num_frames());
  both.values.reserve(static_cast<size_t>(frames * both.width));
  for (int64_t i = 0; i < frames; ++i) {
    for (const auto* part : {&mel, &magnitude}) {
      const auto frame = part->frame(i);
      both.values.insert(both.values.end(), frame.begin(), frame.end());
    }
  }
  return both;
}

audio::FeatureKeys inverted_keys(const SpeechSynthesisOptions& own) {
  if (frame_parts_of(own).num_bins > 0) return magnitude_keys(own.features);
  return own.features;
}

}  // namespace

models::FrameParts frame_parts_of(const SpeechSynthesisOptions& own) {
  return models::frame_parts(own.model, own.features.num_mels,
                             magnitude_keys(own.features).width());
}

audio::FeatureKeys magnitude_keys(const SynthesisFeatureKeys& keys) {
  audio::FeatureKeys magnitudes = keys;
  magnitudes.kind = "spectrogram";
  magnitudes.num_bins = 0;
  magnitudes.floor = keys.magnitude_floor;
  magnitudes.normalise = "none";  // by statistics of mel bands
  magnitudes.mean = {};
  magnitudes.std = {};
  return magnitudes;
}

VoiceFrames::VoiceFrames(const SpeechSynthesisOptions& own, uint64_t seed)
    : keys_(own.features),
      parts_(frame_parts_of(own)),
      mel_(own.features, audio::AugmentKeys{}, seed) {
  if (parts_.num_bins == 0) return;
  magnitude_ = std::make_unique<audio::SoundFeatures>(magnitude_keys(own.features),
                                                      audio::AugmentKeys{}, seed);
}

std::span<const float> VoiceFrames::trimmed(std::span<const float> samples) const {
  const auto margin = std::llround(keys_.trim_margin_seconds * static_cast<double>(keys_.rate));
  const auto part = tasks::sounding_part(samples, keys_.trim_decibels,
                                         std::max<int64_t>(1, keys_.hop_samples()), margin);
  return samples.subspan(static_cast<size_t>(part.begin),
                         static_cast<size_t>(part.end - part.begin));
}

audio::Features VoiceFrames::operator()(std::span<const float> samples) const {
  const auto sound = trimmed(samples);
  if (magnitude_ == nullptr) return mel_(sound);
  if (parts_.num_mels == 0) return (*magnitude_)(sound);
  return side_by_side(mel_(sound), (*magnitude_)(sound));
}

audio::Features VoiceFrames::training(std::span<const float> samples, int64_t epoch,
                                      int64_t sample) const {
  const auto sound = trimmed(samples);
  if (magnitude_ == nullptr) return mel_.training(sound, epoch, sample);
  if (parts_.num_mels == 0) return magnitude_->training(sound, epoch, sample);
  return side_by_side(mel_.training(sound, epoch, sample),
                      magnitude_->training(sound, epoch, sample));
}

audio::Features VoiceFrames::style(std::span<const float> samples) const {
  return part_of_frames((*this)(samples), 0, parts_.decoder_width());
}

FrameSounds::FrameSounds(const SpeechSynthesisOptions& own)
    : parts_(frame_parts_of(own)),
      rate_(own.features.rate),
      inverter_(inverted_keys(own), own.decode) {}

std::vector<float> FrameSounds::operator()(const audio::Features& frames, uint64_t seed) const {
  if (!parts_.has_both()) return inverter_(frames, seed);
  return inverter_(part_of_frames(frames, parts_.num_mels, parts_.num_bins), seed);
}

audio::Features part_of_frames(const audio::Features& frames, int64_t begin, int64_t width) {
  if (begin == 0 && width == frames.width) return frames;
  audio::Features part{.width = width, .values = {}};
  part.values.reserve(static_cast<size_t>(frames.num_frames() * width));
  for (int64_t i = 0; i < frames.num_frames(); ++i) {
    const auto columns =
        frames.frame(i).subspan(static_cast<size_t>(begin), static_cast<size_t>(width));
    part.values.insert(part.values.end(), columns.begin(), columns.end());
  }
  return part;
}

}  // namespace stretto::experiment
