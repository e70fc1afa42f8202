#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace stretto::experiment {

/// Bytes of plain text to a token, about: of sub-words, the space before them included.
inline constexpr int64_t kBytesPerToken = 4;

/// Tokens in so many bytes of text, about.
constexpr int64_t tokens_in(int64_t bytes) {
  return bytes / kBytesPerToken + (bytes % kBytesPerToken > 0 ? 1 : 0);
}

/// So many bytes are read to their end in a few milliseconds, where a number alone is asked for.
inline constexpr int64_t kFewBytes = int64_t{1} << 20;

/// Plain bytes of files, as their sizes on disk tell: compressed files count threefold, a zip
/// member the size of its archive threefold. Nothing when one is missing.
std::optional<int64_t> plain_bytes(std::span<const std::string> paths);

/// What `count` finds in files; 0 = not known, where it stops at an Error.
template <class Count>
int64_t known_count(const Count& count) {
  try {
    return count();
  } catch (const Error&) {
    return 0;  // what training stops at, `check` tells elsewhere
  }
}

}  // namespace stretto::experiment
