#pragma once

#include <cstdint>

namespace stretto::data {

/// What becomes of what a reader finds.
enum class CacheUse : uint8_t {
  kKeeps,  ///< it is taken from the cache, or kept there
  kNone,   ///< nothing is written: files packed in an archive cannot be loaded then
};

}  // namespace stretto::data
