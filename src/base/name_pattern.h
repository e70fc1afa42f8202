#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stretto {

/// Does `name` match a pattern in which `*` stands for any characters (dots too, or none) and `?`
/// for one?
inline bool matches(std::string_view pattern, std::string_view name) {
  // One star at a time: on a mismatch the last star takes one character more.
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Does `name` match one of the patterns, a range of texts?
template <class Patterns>
bool matches_any(const Patterns& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return matches(pattern, name); });
}

}  // namespace stretto
