#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::audio {

/// The sound at another rate, by libsoxr at its high quality ("HQ"), as librosa.resample() does by
/// default: ceil(n to / from) samples. A function of the samples and the rates.
///
/// @param samples  of one channel
/// Throws std::invalid_argument for a rate that is not positive, Error(kOutOfMemory) without
/// memory.
std::vector<float> resampled(std::span<const float> samples, int64_t from, int64_t to);

}  // namespace stretto::audio
