#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

/// Whether one is near enough to the other to be a plausible slip: an optimal-string-alignment edit
/// distance of at most a third of the longer length, or 1.
bool is_slip(std::string_view name, std::string_view other);
/// The nearest of the candidates that are slips away from `name`; empty when none is.
std::string closest(std::string_view name, std::span<const std::string> candidates);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
/// What stands between spaces, without empty words.
std::vector<std::string> split_words(std::string_view text);
std::string trim(std::string_view text);

/// "1,234,567"
std::string with_thousands(int64_t value);
/// "1 line", "2,000 lines", "0 batches": the number and the noun in the form that goes with it.
/// Knows the plurals of -y, -is, -s, -x, -ch and -sh; another one is given.
std::string counted(int64_t count, std::string_view noun, std::string_view plural = "");
/// "1.2 GiB", "340 KiB", "12 B"
std::string human_bytes(uint64_t bytes);
/// "2h 05m", "3m 20s", "4.2s"
std::string human_duration(double seconds);
/// Fixed-point, `%.{decimals}f`.
std::string fixed(double value, int decimals);
/// A share in percent: "0 %", "0.45 %", "12.3 %", "below 0.01 %" - of a small one only a true zero
/// is 0.
std::string percent_text(double share);
/// Shortest form that reads back to the same double.
std::string shortest(double value);

/// True when `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_valid_utf8(std::string_view text);
/// Replaces C0 and C1 control characters (but tab) so that data can never drive a terminal.
std::string printable(std::string_view text, size_t max_bytes = 200);

}  // namespace stretto
