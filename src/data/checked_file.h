#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace stretto::data {

/// Files of the token cache have a checksum for each block of this many bytes (the last one may be
/// shorter). Small, since a batch looks at samples all over the corpus and each first look reads
/// a whole block; large enough that checksums take 0.05 % of the space.
inline constexpr uint64_t kChecksumBlockBytes = uint64_t{16} << 10;

/// XXH3-64 of each block of what is fed to it in parts.
class BlockSums {
 public:
  void update(const void* data, size_t size);
  std::vector<uint64_t> finish();

 private:
  std::string block_;
  std::vector<uint64_t> sums_;
};

/// A mapped file in which nothing is read before the checksum of its block was found right; each
/// block is verified once, when it is first looked at. So opening costs nothing whatever the size.
///
/// Safe to use from several threads.
class CheckedFile {
 public:
  /// @param sums  of all blocks, as BlockSums gives them
  /// Throws as MappedFile does; a file of another size than `sums` has no block that is right.
  CheckedFile(const std::filesystem::path& path, std::vector<uint64_t> sums);

  /// @return where bytes [begin, begin + size) are, or nullptr when they are not all in the file or
  /// one of their blocks is damaged
  const char* bytes(uint64_t begin, uint64_t size) const;

  /// Elements [index, index + count) of a file that is an array of T; nullptr as above.
  template <class T>
  const T* elements(uint64_t index, uint64_t count) const {
    if (index > file_.size() || count > file_.size()) return nullptr;  // so that nothing overflows
    return reinterpret_cast<const T*>(bytes(index * sizeof(T), count * sizeof(T)));
  }

  /// Verifies all blocks, on several threads where it pays.
  bool is_whole(int64_t threads) const;
  /// All bytes as they are; for after is_whole().
  std::string_view unchecked() const { return file_.bytes(); }

 private:
  bool verify(uint64_t block) const;

  MappedFile file_;
  std::vector<uint64_t> sums_;
  /// 1 for each block that was found right. Two threads may verify the same one: no harm.
  std::unique_ptr<std::atomic<uint8_t>[]> seen_;
};

}  // namespace stretto::data
