#pragma once

#include <cstdint>

namespace stretto::data {

/// How the content of a path of `[data]` is looked at, to tell later what has changed.
enum class DataKind : uint8_t {
  kText,      ///< a file of lines, unpacked by its ending
  kBytes,     ///< a file as it lies there
  kTree,      ///< a folder with all files below it
  kManifest,  ///< a file of rows that name other files, and these files
};

}  // namespace stretto::data
