#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "data/content_hash.h"

namespace stretto::data {

/// What a file was when it was looked at.
struct KnownFile {
  uint64_t stamp = 0;  ///< stamp_hash() of then
  uint64_t bytes = 0;
  uint64_t hash = 0;  ///< XXH3-64 of its content
};

uint64_t stamp_hash(const FileStamp& stamp);

/// Opens a file that has to be the one that was looked at: one that was touched or replaced is read
/// once more for that. Throws a SampleError where it has vanished, or holds something else now;
/// Error(kIo).
Descriptor open_known(const std::string& path, const KnownFile& known);

/// All bytes of such a file. Throws as open_known().
std::string read_known(const std::string& path, const KnownFile& known);

}  // namespace stretto::data
