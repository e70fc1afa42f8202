#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace stretto::audio {

/// The bytes of a WAV file of 16 bits and one channel. Samples are rounded to multiples of 2^-15
/// and cut to [-1, 1); a number that is not finite becomes 0. What a 16-bit file was read as gives
/// the same samples again.
/// Throws std::invalid_argument for a rate outside 1 … kMaxRate, or for more than 4 GiB.
std::string wave_bytes(std::span<const float> samples, int64_t rate);

/// Writes them to a file, which appears as a whole or not at all. Throws Error(kIo).
void write_wave(const std::filesystem::path& path, std::span<const float> samples, int64_t rate);

}  // namespace stretto::audio
