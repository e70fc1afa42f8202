#include "distributed/byte_rounds.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace stretto::distributed {
namespace {

constexpr size_t kAllSlots = size_t{2} << 20, kLargestSlot = size_t{1} << 20;
constexpr size_t kLengthBytes = sizeof(uint64_t);

}  // namespace

size_t ByteRounds::capacity_for(int size) {
  const size_t share = kAllSlots / static_cast<size_t>(std::max(size, 1)) / 256 * 256;
  return std::clamp(share, kFirst, kLargestSlot);
}

ByteRounds::ByteRounds(int rank, int size, std::span<char> slots, Gather gather)
    : rank_(static_cast<size_t>(rank)),
      size_(static_cast<size_t>(size)),
      capacity_(slots.size() / static_cast<size_t>(size)),
      slots_(slots),
      gather_(std::move(gather)) {
  if (capacity_ < kFirst) throw std::invalid_argument("[dist] the slots are too small");
}

std::vector<std::string> ByteRounds::run(const std::string& mine) {
  const uint64_t length = mine.size();
  char* const own = slots_.data() + rank_ * kFirst;
  std::memcpy(own, &length, kLengthBytes);
  const size_t head = std::min(mine.size(), kFirst - kLengthBytes);
  std::memcpy(own + kLengthBytes, mine.data(), head);
  gather_(kFirst);
  std::vector<std::string> all(size_);
  std::vector<uint64_t> lengths(size_);
  uint64_t longest = 0;
  for (size_t r = 0; r < size_; ++r) {
    const char* const slot = slots_.data() + r * kFirst;
    std::memcpy(&lengths[r], slot, kLengthBytes);
    longest = std::max(longest, lengths[r]);
    all[r].assign(slot + kLengthBytes, std::min<uint64_t>(lengths[r], kFirst - kLengthBytes));
  }
  for (uint64_t done = kFirst - kLengthBytes; done < longest;) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(longest - done, capacity_));
    if (done < length) {
      std::memcpy(slots_.data() + rank_ * bytes, mine.data() + done,
                  std::min<uint64_t>(length - done, bytes));
    }
    gather_(bytes);
    for (size_t r = 0; r < size_; ++r) {
      if (done >= lengths[r]) continue;
      all[r].append(slots_.data() + r * bytes, std::min<uint64_t>(lengths[r] - done, bytes));
    }
    done += bytes;
  }
  return all;
}

}  // namespace stretto::distributed
