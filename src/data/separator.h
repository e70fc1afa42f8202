#pragma once

#include <string>
#include <string_view>

/// The character between the fields of a line: `data.separator`.
namespace stretto::data {

/// Whether fields may be cut at it: one ASCII character that is neither a quote nor a line end.
bool is_separator(std::string_view text);

/// What may stand between the fields of a line that is one field; 0 for nothing.
/// @param separator  between which it is one
char other_separator(std::string_view line, char separator);

/// As a configuration writes it: "set data.separator = \";\"".
std::string advice_on_separator(char separator);

}  // namespace stretto::data
