#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace stretto {

/// "a, b and c"
inline std::string listed_names(std::span<const std::string> names) {
  if (names.size() < 2) return join(names, "");
  return join(names.first(names.size() - 1), ", ") + " and " + names.back();
}

/// "a, b, c and 17 more": at most `most` names, each printable and of at most `max_bytes` bytes.
inline std::string first_names(std::span<const std::string> names, size_t most, size_t max_bytes) {
  std::vector<std::string> shown;
  for (const auto& name : names.first(std::min(most, names.size()))) {
    shown.push_back(printable(name, max_bytes));
  }
  const std::string text = join(shown, ", ");
  if (names.size() == shown.size()) return text;
  return text + " and " + with_thousands(static_cast<int64_t>(names.size() - shown.size())) +
         " more";
}

}  // namespace stretto
