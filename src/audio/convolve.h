#pragma once

#include <span>
#include <vector>

namespace stretto::audio {

/// The linear convolution y_t = sum_i h_i x_(t - i), all of its n + m - 1 numbers, by Fourier
/// transforms of blocks. Empty where x or h is.
std::vector<float> convolved(std::span<const float> samples, std::span<const float> impulse);

/// The sound in a room (Ko et al. 2017): convolved with the room's impulse response, whose loudest
/// sample arrives without delay, as long and as loud as it was: the mean of squares is the same.
/// Throws std::invalid_argument for an impulse response that is empty or silent.
std::vector<float> reverberated(std::span<const float> samples, std::span<const float> impulse);

}  // namespace stretto::audio
