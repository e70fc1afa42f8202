#include "data/checked_file.h"

#include <algorithm>
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

CheckedFile::CheckedFile(const std::filesystem::path& path, std::vector<uint64_t> sums)
    : file_(path),
      sums_(std::move(sums)),
      seen_(std::make_unique<std::atomic<uint8_t>[]>(sums_.size())) {}

const char* CheckedFile::bytes(uint64_t begin, uint64_t size) const {
  if (begin > file_.size() || size > file_.size() - begin) return nullptr;
  if (blocks_of(file_.size()) != sums_.size()) return nullptr;
  if (size > 0) {
    const uint64_t last = (begin + size - 1) / kChecksumBlockBytes;
    for (uint64_t block = begin / kChecksumBlockBytes; block <= last; ++block) {
      if (seen_[block].load(std::memory_order_relaxed) == 0 && !verify(block)) return nullptr;
    }
  }
  // An empty file has no map, and cannot be damaged.
  static constexpr char kNothing = '\0';
  return file_.size() == 0 ? &kNothing : file_.bytes().data() + begin;
}

bool CheckedFile::verify(uint64_t block) const {
  const auto bytes = file_.bytes().substr(block * kChecksumBlockBytes, kChecksumBlockBytes);
  if (xxh3_64(bytes) != sums_[block]) return false;
  seen_[block].store(1, std::memory_order_relaxed);
  return true;
}

bool CheckedFile::is_whole(int64_t threads) const {
  const uint64_t blocks = sums_.size();
  if (blocks_of(file_.size()) != blocks) return false;
  const uint64_t wanted = std::clamp<uint64_t>(
      blocks / kBlocksForAThread, 1, static_cast<uint64_t>(std::max<int64_t>(threads, 1)));
  std::atomic<bool> whole = true;
  const auto work = [&](uint64_t part) {
    const uint64_t end = blocks * (part + 1) / wanted;
    for (uint64_t block = blocks * part / wanted; block < end && whole; ++block) {
      if (!verify(block)) whole = false;
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
