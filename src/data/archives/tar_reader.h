#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "data/byte_stream.h"

namespace stretto::data {

/// A member of a tar archive.
struct TarMember {
  enum class Kind : uint8_t { kFile, kFolder, kOther };
  std::string name;
  Kind kind = Kind::kFile;
  std::string other = {};  ///< of kOther in words: "a link", "a device", "a sparse file"
  uint64_t size = 0;       ///< of its bytes
  uint64_t offset = 0;     ///< of its bytes in the unpacked archive
};

/// Reads the members of a tar archive (ustar, pax, GNU) from first to last, by libarchive.
class TarReader {
 public:
  /// @param name  of the archive, for messages
  /// Throws Error(kBadData) for bytes that are no tar archive.
  TarReader(std::unique_ptr<ByteStream> bytes, std::string name);
  ~TarReader();

  /// @return false at the end. Throws Error(kBadData) for a damaged archive, or one that is cut
  /// off, and what the stream throws.
  bool next(TarMember& member);
  /// The bytes of the last member; at most `capacity`, 0 at their end. Throws as next().
  size_t read(char* buffer, size_t capacity);
  /// All bytes of the last member. Throws as next().
  std::string read_all(const TarMember& member);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto::data
