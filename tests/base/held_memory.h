#pragma once

#include <malloc.h>

#include <cstddef>

namespace stretto::testing {

/// Bytes that this process holds of malloc(). The sanitizers have an allocator of their own, where
/// it is always 0.
inline size_t held_memory() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace stretto::testing
