#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace stretto {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 64;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNone);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const std::string_view four = text.substr(at, 4);
    const bool is_last = at + 4 == text.size();
    const size_t digits = !is_last || four[3] != '=' ? 4 : four[2] != '=' ? 3 : 2;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < digits ? kValues[static_cast<uint8_t>(four[i])] : uint8_t{0};
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    const size_t count = digits - 1;
    for (size_t i = 0; i < 3; ++i) {
      const auto byte = static_cast<uint8_t>(group >> (16 - 8 * i) & 255);
      if (i < count) {
        bytes += static_cast<char>(byte);
      } else if (byte != 0) {
        return std::nullopt;
      }
    }
  }
  return bytes;
}

}  // namespace stretto
