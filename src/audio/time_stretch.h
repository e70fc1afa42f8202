#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::audio {

/// The sound at another tempo, with its pitch: WSOLA (Verhelst and Roelands 1993). Windows of 30 ms
/// overlap by half. Each is taken within 7.5 ms of its place, where it continues the one before
/// best.
/// @param tempo  above 1 is faster; within 0.1 … 10
/// @return round(n / tempo) samples
/// Throws std::invalid_argument for another tempo, or a rate that is not positive.
std::vector<float> stretched(std::span<const float> samples, int64_t rate, double tempo);

}  // namespace stretto::audio
