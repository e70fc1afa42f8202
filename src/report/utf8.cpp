#include "report/utf8.h"

#include <cstdint>

namespace stretto::report {
namespace {

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

/// Bytes of the well-formed sequence at the front of `text`; 0 when there is none (Unicode 15,
/// table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  const auto second = static_cast<uint8_t>(text[1]);
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < low || second > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  return length;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) {
      out += "\uFFFD";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += is_continuation(byte) ? 0 : 1;
  return count;
}

std::string ellipsis(std::string_view text, size_t max_code_points) {
  if (count_code_points(text) <= max_code_points) return std::string(text);
  if (max_code_points == 0) return "";
  size_t end = 0;
  for (size_t kept = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && kept++ == max_code_points - 1) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string cut_text(std::string_view text, size_t max_code_points) {
  return ellipsis(valid_utf8(text), max_code_points);
}

}  // namespace stretto::report
