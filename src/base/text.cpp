#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

namespace stretto {
namespace {

// Edit distance in which swapping two neighbours costs one (optimal string alignment).
size_t alignment_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// Characters that both have, each as often as the one that has it less often.
size_t num_shared(std::string_view a, std::string_view b) {
  std::array<size_t, 256> left{};
  for (const char c : a) ++left[static_cast<unsigned char>(c)];
  size_t shared = 0;
  for (const char c : b) {
    size_t& of_this = left[static_cast<unsigned char>(c)];
    if (of_this == 0) continue;
    --of_this;
    ++shared;
  }
  return shared;
}

// The distance of two names, where it is that of a slip.
std::optional<size_t> slip_distance(std::string_view a, std::string_view b) {
  const size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  const size_t limit = std::max<size_t>(1, longer / 3);
  // Both are lower bounds, and known at once: a huge mistyped name costs nothing, and hardly any
  // pair of unlike names is aligned.
  if (longer - shorter > limit || longer - num_shared(a, b) > limit) return std::nullopt;
  const size_t distance = alignment_distance(a, b);
  return distance <= limit ? std::optional(distance) : std::nullopt;
}

// Length in bytes of the well-formed UTF-8 character at the start of `text`; 0 when there is none.
// The table is that of the Unicode standard (3.9, table 3-7).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

void append_escaped(std::string& out, unsigned char byte) {
  std::array<char, 5> text{};
  std::snprintf(text.data(), text.size(), "\\x%02x", byte);
  out += text.data();
}

std::string plural_of(std::string_view noun) {
  constexpr std::string_view kVowels = "aeiou";
  const std::string whole(noun),
      stem(noun.substr(0, noun.size() - std::min<size_t>(1, noun.size())));
  if (noun.ends_with("is")) return whole.substr(0, whole.size() - 2) + "es";
  if (noun.ends_with('y') && !stem.empty() && kVowels.find(stem.back()) == kVowels.npos) {
    return stem + "ies";
  }
  const bool hisses =
      noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") || noun.ends_with("sh");
  return whole + (hisses ? "es" : "s");
}

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, args...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, args...);
  return text;
}

}  // namespace

bool is_slip(std::string_view name, std::string_view other) {
  return slip_distance(name, other).has_value();
}

std::string closest(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const std::string& candidate : candidates) {
    const auto distance = slip_distance(name, candidate);
    if (distance && *distance < best_distance) {
      best = candidate;
      best_distance = *distance;
    }
  }
  return best;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> split_words(std::string_view text) {
  auto words = split(text, ' ');
  std::erase(words, "");
  return words;
}

std::string trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

std::string with_thousands(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string counted(int64_t count, std::string_view noun, std::string_view plural) {
  const std::string number = with_thousands(count) + " ";
  if (count == 1) return number + std::string(noun);
  return number + (plural.empty() ? plural_of(noun) : std::string(plural));
}

std::string human_bytes(uint64_t bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.5 and more would be printed as "1024".
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return format(unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return "-" + human_duration(-seconds);
  if (seconds < 59.95) return format("%.1fs", seconds);
  if (seconds > 1e15) return "?";  // past what the integers below can hold
  const int64_t whole = std::llround(seconds);
  const auto days = static_cast<long long>(whole / 86400);
  const auto hours = static_cast<int>(whole / 3600 % 24);
  const auto minutes = static_cast<int>(whole / 60 % 60);
  if (days > 0) return format("%lldd %02dh", days, hours);
  if (hours > 0) return format("%dh %02dm", hours, minutes);
  return format("%dm %02ds", minutes, static_cast<int>(whole % 60));
}

std::string fixed(double value, int decimals) {
  return format("%.*f", decimals, value);
}

std::string percent_text(double share) {
  if (share > 0 && share < 0.00005) return "below 0.01 %";
  return (share == 0 ? "0" : fixed(100 * share, share < 0.1 ? 2 : 1)) + " %";
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;
    if (text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // ASCII, as most text is
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    std::string shown;
    const auto second = static_cast<unsigned char>(text.size() > 1 ? text[1] : 0);
    if (length == 0) {
      append_escaped(shown, static_cast<unsigned char>(text[0]));
    } else if (length == 1 && text[0] != '\t' && (text[0] < 0x20 || text[0] == 0x7F)) {
      append_escaped(shown, static_cast<unsigned char>(text[0]));
    } else if (length == 2 && text[0] == '\xC2' && second < 0xA0) {
      append_escaped(shown, second);  // U+0080 to U+009F, which some terminals obey
    } else {
      shown = text.substr(0, length);
    }
    if (out.size() + shown.size() > max_bytes) return out + "…";
    out += shown;
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return out;
}

}  // namespace stretto
