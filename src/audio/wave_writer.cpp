#include "audio/wave_writer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "audio/audio_file.h"
#include "base/atomic_file.h"

namespace stretto::audio {
namespace {

constexpr uint64_t kSampleBytes = 2, kFormatBytes = 16, kIntegers = 1, kChannels = 1;
constexpr uint64_t kHeaderBytes = 36;  // behind the size of the file, without samples
constexpr float kWaveScale = 32768;

void add_number(std::string& bytes, uint64_t number, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xFFU);
}

int16_t rounded(float sample) {
  if (!std::isfinite(sample)) return 0;
  const float scaled = std::nearbyint(std::clamp(sample, -1.0F, 1.0F) * kWaveScale);
  return static_cast<int16_t>(std::min(scaled, kWaveScale - 1));
}

}  // namespace

std::string wave_bytes(std::span<const float> samples, int64_t rate) {
  const uint64_t data_bytes = samples.size() * kSampleBytes;
  if (rate < 1 || rate > kMaxRate) {
    throw std::invalid_argument("wave: a rate of " + std::to_string(rate) + " Hz");
  }
  if (data_bytes > std::numeric_limits<uint32_t>::max() - kHeaderBytes) {
    throw std::invalid_argument("wave: more than 4 GiB of samples");
  }
  const auto bytes_a_second = static_cast<uint64_t>(rate) * kSampleBytes;
  std::string bytes = "RIFF";
  bytes.reserve(static_cast<size_t>(data_bytes + kHeaderBytes + 8));
  add_number(bytes, kHeaderBytes + data_bytes, 4);
  bytes += "WAVEfmt ";
  add_number(bytes, kFormatBytes, 4);
  add_number(bytes, kIntegers, 2);
  add_number(bytes, kChannels, 2);
  add_number(bytes, static_cast<uint64_t>(rate), 4);
  add_number(bytes, bytes_a_second, 4);
  add_number(bytes, kSampleBytes, 2);
  add_number(bytes, 8 * kSampleBytes, 2);
  bytes += "data";
  add_number(bytes, data_bytes, 4);
  for (const float sample : samples) {
    add_number(bytes, static_cast<uint16_t>(rounded(sample)), static_cast<int>(kSampleBytes));
  }
  return bytes;
}

void write_wave(const std::filesystem::path& path, std::span<const float> samples, int64_t rate) {
  AtomicFile file(path);
  file.write(wave_bytes(samples, rate));
  file.publish();
}

}  // namespace stretto::audio
