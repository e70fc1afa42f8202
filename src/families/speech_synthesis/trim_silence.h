#pragma once

#include <cstdint>
#include <span>

/// Silence at the ends of recordings. A model that has to learn how long silence lasts, which no
/// text says, learns late where speech ends. No libtorch.
namespace stretto::tasks {

/// Samples [begin, end) of a sound.
struct SoundPart {
  int64_t begin = 0, end = 0;

  bool operator==(const SoundPart&) const = default;
};

/// The part of a sound from its first to its last frame that is at most `decibels` below the
/// loudest one, by the root of the mean square of frames that stand next to each other, with
/// `margin` samples more on either side. All of a sound without any loud frame, and of one with
/// `decibels` = 0.
/// @param frame_samples  of a frame, at least 1
SoundPart sounding_part(std::span<const float> samples, double decibels, int64_t frame_samples,
                        int64_t margin);

}  // namespace stretto::tasks
