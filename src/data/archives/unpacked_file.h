#pragma once

#include <memory>
#include <string>

#include "data/byte_stream.h"

namespace stretto::data {

/// The bytes of a file, unpacked where its first bytes are those of gzip or zstd.
struct UnpackedFile {
  std::unique_ptr<ByteStream> bytes;
  bool is_packed = false;
};
/// Throws as open_bytes().
UnpackedFile open_unpacked(const std::string& path);

}  // namespace stretto::data
