#pragma once

#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

/// Sounds for tests, and files of them.
namespace stretto::audio::test {

/// A tone below full scale.
inline std::vector<float> tone(double hz, int64_t rate, int64_t samples) {
  std::vector<float> sound;
  for (int64_t i = 0; i < samples; ++i) {
    const double angle =
        2 * std::numbers::pi * hz * static_cast<double>(i) / static_cast<double>(rate);
    sound.push_back(static_cast<float>(0.5 * std::sin(angle)));
  }
  return sound;
}

/// A sound as libsndfile writes it.
/// @param format   SF_FORMAT_…: container and encoding
/// @param samples  [frames, channels]
inline void write_sound(const std::string& path, int format, int rate, int channels,
                        const std::vector<float>& samples) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = ::sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << ::sf_strerror(nullptr);
  const auto frames = static_cast<sf_count_t>(samples.size()) / channels;
  ASSERT_EQ(::sf_writef_float(file, samples.data(), frames), frames);
  ::sf_close(file);
}

inline std::string little_endian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

/// The bytes of a WAV file. @param encoding  1: integers, 3: floats
inline std::string wave(int rate, int channels, int bits, int encoding, std::string_view samples) {
  const auto frame_bytes = static_cast<uint64_t>(channels * bits / 8);
  const std::string format = little_endian(static_cast<uint64_t>(encoding), 2) +
                             little_endian(static_cast<uint64_t>(channels), 2) +
                             little_endian(static_cast<uint64_t>(rate), 4) +
                             little_endian(static_cast<uint64_t>(rate) * frame_bytes, 4) +
                             little_endian(frame_bytes, 2) +
                             little_endian(static_cast<uint64_t>(bits), 2);
  const std::string body = "WAVEfmt " + little_endian(format.size(), 4) + format + "data" +
                           little_endian(samples.size(), 4) + std::string(samples);
  return "RIFF" + little_endian(body.size(), 4) + body;
}

inline std::string bytes_of_integers(const std::vector<int64_t>& numbers, int bytes) {
  std::string text;
  for (const int64_t number : numbers) text += little_endian(static_cast<uint64_t>(number), bytes);
  return text;
}

}  // namespace stretto::audio::test
