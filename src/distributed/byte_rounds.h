#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stretto::distributed {

/// Gathers bytes of any length through slots of a fixed size, one for each rank, so that messages
/// need no memory of their own: what a backend does that must speak when there is none left.
///
/// Each round all ranks fill their slot and get all slots. The first is `first` bytes long, which
/// control messages fit, and brings the lengths; what is longer goes on in rounds of up to
/// `capacity` bytes.
class ByteRounds {
 public:
  static constexpr size_t kFirst = 4096;
  /// Bytes of a slot: as many as 2 MiB have for each rank, at least kFirst and at most 1 MiB.
  static size_t capacity_for(int size);

  /// `slots` is size x capacity bytes of host memory; in a round rank r's slot is the `bytes` bytes
  /// from r * `bytes`. `gather` brings the slots of all ranks, where this rank's is filled.
  using Gather = std::function<void(size_t bytes)>;
  ByteRounds(int rank, int size, std::span<char> slots, Gather gather);

  /// Collective. Each rank's bytes, in order of rank.
  std::vector<std::string> run(const std::string& mine);

 private:
  size_t rank_, size_, capacity_;
  std::span<char> slots_;
  Gather gather_;
};

}  // namespace stretto::distributed
