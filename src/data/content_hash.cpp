#include "data/content_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/byte_stream.h"

namespace stretto::data {
namespace {

constexpr size_t kHashBytes = size_t{1} << 20;
constexpr uint64_t kSettledNs = 2'000'000'000;
constexpr size_t kMaxMemoryBytes = size_t{64} << 10;  // a path has a few thousand at most

std::string stamp_text(const FileStamp& stamp) {
  std::ostringstream text;
  text << "2 " << stamp.size << ' ' << stamp.mtime_ns << ' ' << stamp.inode << ' ' << stamp.device;
  return text.str();
}

uint64_t hash_bytes(const std::filesystem::path& path) {
  const auto bytes = open_plain(path);
  std::vector<char> buffer(kHashBytes);
  Xxh3Stream hash;
  while (const size_t got = bytes->read(buffer.data(), buffer.size())) {
    hash.update(buffer.data(), got);
  }
  return hash.digest();
}

uint64_t now_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

/// What is remembered of one file: stamp, hash, path, and a checksum of these three lines.
std::string memory_text(const std::string& stamp, const std::string& hash,
                        const std::string& path) {
  const std::string lines = stamp + "\n" + hash + "\n" + path + "\n";
  return lines + hex64(xxh3_64(lines)) + "\n";
}

/// The hash that is remembered, or nothing: then the file is read again.
std::optional<uint64_t> remembered_hash(const std::filesystem::path& memory,
                                        const std::string& stamp, const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(memory, failure)) return std::nullopt;
  std::string text;
  try {
    text = read_file(memory, kMaxMemoryBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
  constexpr size_t kHexDigits = 16;
  if (!text.starts_with(stamp + "\n") || text.size() < stamp.size() + 1 + kHexDigits) {
    return std::nullopt;
  }
  const std::string hash = text.substr(stamp.size() + 1, kHexDigits);
  if (text != memory_text(stamp, hash, path)) return std::nullopt;
  return std::stoull(hash, nullptr, 16);
}

uint64_t content_hash(const std::filesystem::path& path, const std::filesystem::path& memory_dir) {
  const FileStamp stamp = file_stamp(path);
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  const std::filesystem::path memory = memory_dir / hex64(xxh3_64(absolute));
  const std::string expected = stamp_text(stamp);
  if (const auto known = remembered_hash(memory, expected, absolute)) return *known;
  const uint64_t hash = hash_bytes(path);
  if (file_stamp(path) == stamp && stamp.mtime_ns + kSettledNs < now_ns()) {
    write_file_atomic(memory, memory_text(expected, hex64(hash), absolute));
  }
  return hash;
}

}  // namespace

FileStamp file_stamp(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    open_plain(path);  // says what is wrong
    throw_io_error("cannot look at", path, errno);
  }
  return {.size = static_cast<uint64_t>(info.st_size),
          .mtime_ns = static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000u +
                      static_cast<uint64_t>(info.st_mtim.tv_nsec),
          .inode = info.st_ino,
          .device = info.st_dev};
}

std::vector<uint64_t> content_hashes(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& memory_dir, int64_t threads) {
  std::vector<uint64_t> hashes(files.size());
  std::vector<std::exception_ptr> failures(files.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) {
      try {
        hashes[i] = content_hash(files[i], memory_dir);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    const auto helpers = std::min<int64_t>(threads, static_cast<int64_t>(files.size())) - 1;
    std::vector<std::jthread> pool;
    for (int64_t i = 0; i < helpers; ++i) pool.emplace_back(work);
    work();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return hashes;
}

}  // namespace stretto::data
