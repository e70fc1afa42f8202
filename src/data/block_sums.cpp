#include "data/block_sums.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/hash.h"

namespace stretto::data {
namespace {

// With fewer blocks for each, a thread costs more than it saves.
constexpr uint64_t kBlocksForAThread = 512;  // 8 MiB

uint64_t blocks_of(uint64_t bytes) {
  return (bytes + kChecksumBlockBytes - 1) / kChecksumBlockBytes;
}

}  // namespace

void BlockSums::update(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const size_t take = std::min(size, kChecksumBlockBytes - block_.size());
    block_.append(at, take);
    at += take;
    size -= take;
    if (block_.size() < kChecksumBlockBytes) return;
    sums_.push_back(xxh3_64(block_));
    block_.clear();
  }
}

std::vector<uint64_t> BlockSums::finish() {
  if (!block_.empty()) sums_.push_back(xxh3_64(block_));
  block_.clear();
  return std::exchange(sums_, {});
}

bool has_sums(std::string_view bytes, std::span<const uint64_t> sums, int64_t threads) {
  const uint64_t blocks = sums.size();
  if (blocks_of(bytes.size()) != blocks) return false;
  const uint64_t wanted = std::clamp<uint64_t>(
      blocks / kBlocksForAThread, 1, static_cast<uint64_t>(std::max<int64_t>(threads, 1)));
  std::atomic<bool> whole = true;
  const auto work = [&](uint64_t part) {
    const uint64_t end = blocks * (part + 1) / wanted;
    for (uint64_t block = blocks * part / wanted; block < end && whole; ++block) {
      const auto of_block = bytes.substr(block * kChecksumBlockBytes, kChecksumBlockBytes);
      if (xxh3_64(of_block) != sums[block]) whole = false;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (uint64_t part = 1; part < wanted; ++part) helpers.emplace_back(work, part);
    work(0);
  }
  return whole;
}

}  // namespace stretto::data
