#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "audio/feature_keys.h"
#include "audio/features.h"

namespace stretto::audio {

/// Why features cannot be made before the sound has ended, as a sentence with its remedy; empty
/// where they can. Statistics of the whole sound are the reason: of normalise, normalise_peak, or
/// compression = "decibel".
std::string stream_obstacle(const FeatureKeys& keys);

/// Features of a sound that arrives in pieces: the same bits as SoundFeatures(keys) makes of the
/// whole. A frame is certain when its last sample is there; memory does not grow with the sound.
///
///     FeatureStream stream(keys);
///     while (more) use(stream.push(piece));
///     use(stream.finish());
class FeatureStream {
 public:
  /// Throws Error(kUsage) with stream_obstacle(keys).
  explicit FeatureStream(const FeatureKeys& keys);
  ~FeatureStream();
  FeatureStream(FeatureStream&&) noexcept;
  FeatureStream& operator=(FeatureStream&&) noexcept;

  int64_t width() const;
  /// Frames that have been returned so far.
  int64_t num_frames() const;
  /// @param samples  of one channel, at keys.rate, behind those of the call before
  /// @return the frames that are certain now, [any number, width()]
  Features push(std::span<const float> samples);
  /// The sound ends here. @return the other frames. Then a new sound may begin.
  Features finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto::audio
