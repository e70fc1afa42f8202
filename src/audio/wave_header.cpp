#include "audio/wave_header.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace stretto::audio {
namespace {

constexpr size_t kMostChunks = 1000;  // before the samples
constexpr uint64_t kFormHeaderBytes = 12, kChunkHeaderBytes = 8;
constexpr uint64_t kNoLength = 0xFFFFFFFF;       // of RF64, and of streams by ffmpeg
constexpr uint64_t kStreamLength = 0x7FFF'F000;  // of streams by SoX, minus the header
constexpr size_t kDataSizeInDs64 = 8;            // behind the size of the file

uint64_t number_in(const uint8_t* bytes, size_t count, bool is_big_endian) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = is_big_endian ? count - 1 - i : i;
    number |= uint64_t{bytes[i]} << (8 * place);
  }
  return number;
}

bool is_id(const uint8_t* bytes, std::string_view id) {
  return std::memcmp(bytes, id.data(), id.size()) == 0;
}

}  // namespace

std::optional<WaveData> find_wave_data(const AudioBytes& bytes) {
  std::array<uint8_t, kFormHeaderBytes> form{};
  if (bytes.read_at(0, form.data(), form.size()) < form.size()) return std::nullopt;
  const bool is_big_endian = is_id(form.data(), "RIFX"), is_long = is_id(form.data(), "RF64");
  if (!is_big_endian && !is_long && !is_id(form.data(), "RIFF")) return std::nullopt;
  if (!is_id(form.data() + 8, "WAVE")) return std::nullopt;

  uint64_t at = kFormHeaderBytes, long_size = 0;
  for (size_t i = 0; i < kMostChunks; ++i) {
    std::array<uint8_t, kChunkHeaderBytes> chunk{};
    if (bytes.read_at(at, chunk.data(), chunk.size()) < chunk.size()) return std::nullopt;
    const uint64_t size = number_in(chunk.data() + 4, 4, is_big_endian);
    at += kChunkHeaderBytes;
    if (is_id(chunk.data(), "data")) {
      WaveData found{.said_bytes = size, .bytes_there = bytes.size() - at};
      if (is_long && size == kNoLength) found.said_bytes = long_size;
      found.is_open_ended =
          found.said_bytes == 0 || (!is_long && found.said_bytes >= kStreamLength - kMostChunks);
      return found;
    }
    if (is_id(chunk.data(), "ds64")) {
      std::array<uint8_t, 2 * kDataSizeInDs64> sizes{};
      if (bytes.read_at(at, sizes.data(), sizes.size()) < sizes.size()) return std::nullopt;
      long_size = number_in(sizes.data() + kDataSizeInDs64, kDataSizeInDs64, is_big_endian);
    }
    at += size + (size & 1U);
  }
  return std::nullopt;
}

}  // namespace stretto::audio
