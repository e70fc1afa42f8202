#pragma once

#include <cstdint>
#include <span>

#include "audio/features.h"

namespace stretto::audio {

/// Over what a mean and a standard deviation are taken.
enum class NormaliseOver : uint8_t {
  kFrames,  ///< each feature over the frames of the sound
  kAll,     ///< all features and frames together
};

struct NormaliseOptions {
  NormaliseOver over = NormaliseOver::kFrames;
  double epsilon = 1e-5;     ///< added to the standard deviation
  bool is_unbiased = false;  ///< divides by n - 1, as NeMo does; else by n, as numpy
};

/// (x - mean) / (deviation + epsilon), over the frames of this sound alone: there is no padding
/// that could take part. In double, in the order of frames.
void normalise(Features& features, const NormaliseOptions& options = {});

/// (x - mean) / deviation, with a number for each feature or one for all.
/// Throws std::invalid_argument for another count of numbers.
void normalise_by(Features& features, std::span<const double> mean,
                  std::span<const double> deviation);

}  // namespace stretto::audio
