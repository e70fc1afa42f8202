#pragma once

#include <chrono>

namespace stretto {

/// Seconds since `start`, by the clock that is never set back.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds since 1970 by the wall clock: for what people or other machines are to read.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace stretto
