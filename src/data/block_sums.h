#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::data {

/// Files of the cache have a checksum for each block of this many bytes (the last one may be
/// shorter): 0.05 % of their space.
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

/// Whether all blocks have the checksums that BlockSums gave them. Uses several threads where it
/// pays.
bool has_sums(std::string_view bytes, std::span<const uint64_t> sums, int64_t threads);

}  // namespace stretto::data
