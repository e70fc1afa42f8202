#include "data/content_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/on_threads.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

constexpr size_t kHashBytes = size_t{1} << 20;
constexpr uint64_t kSettledNs = 2'000'000'000;
constexpr size_t kMaxMemoryBytes = size_t{64} << 10;  // a path has a few thousand at most

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

uint64_t ns_of(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
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

std::string absolute_path(const std::filesystem::path& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::filesystem::path memory_of(const std::string& absolute,
                                const std::filesystem::path& memory_dir) {
  return memory_dir / hex64(xxh3_64(absolute));
}

/// What is known of a file's bytes without reading them.
std::optional<uint64_t> known_hash(const std::filesystem::path& path, const FileStamp& stamp,
                                   const std::filesystem::path& memory_dir) {
  const std::string absolute = absolute_path(path);
  if (const auto known = StartMemory::find(absolute, stamp)) return known->stored_hash;
  if (memory_dir.empty()) return std::nullopt;
  return remembered_hash(memory_of(absolute, memory_dir), stamp_text(stamp), absolute);
}

uint64_t content_hash(const std::filesystem::path& path, const std::filesystem::path& memory_dir) {
  const FileStamp stamp = file_stamp(path);
  if (const auto known = known_hash(path, stamp, memory_dir)) return *known;
  const uint64_t hash = hash_bytes(path);
  remember_hash(path, stamp, hash, memory_dir);
  return hash;
}

}  // namespace

std::string stamp_text(const FileStamp& stamp) {
  std::ostringstream text;
  text << "3 " << stamp.size << ' ' << stamp.mtime_ns << ' ' << stamp.ctime_ns << ' ' << stamp.inode
       << ' ' << stamp.device;
  return text.str();
}

bool is_settled(const FileStamp& stamp) {
  return std::max(stamp.mtime_ns, stamp.ctime_ns) + kSettledNs < now_ns();
}

bool is_settled(const std::filesystem::path& path, const FileStamp& stamp) {
  return file_stamp(path) == stamp && is_settled(stamp);
}

void remember_hash(const std::filesystem::path& path, const FileStamp& stamp, uint64_t hash,
                   const std::filesystem::path& memory_dir) {
  StartMemory::put(absolute_path(path), stamp, {.stored_hash = hash, .blocks = {}});
  if (memory_dir.empty() || !is_settled(path, stamp)) return;
  const std::string absolute = absolute_path(path);
  refusal_of([&] {
    write_file_atomic(memory_of(absolute, memory_dir),
                      memory_text(stamp_text(stamp), hex64(hash), absolute));
  });
}

FileStamp stamp_of(const struct stat& info) {
  return {.size = static_cast<uint64_t>(info.st_size),
          .mtime_ns = ns_of(info.st_mtim),
          .ctime_ns = ns_of(info.st_ctim),
          .inode = info.st_ino,
          .device = info.st_dev};
}

FileStamp file_stamp(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    open_plain(path);  // says what is wrong
    throw_io_error("cannot look at", path, errno);
  }
  return stamp_of(info);
}

std::optional<uint64_t> find_content_hash(const std::filesystem::path& path,
                                          const std::filesystem::path& memory_dir) {
  return known_hash(path, file_stamp(path), memory_dir);
}

std::vector<uint64_t> content_hashes(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& memory_dir, int64_t threads) {
  std::vector<uint64_t> hashes(files.size());
  for_each_on_threads(files.size(), threads,
                      [&](size_t i) { hashes[i] = content_hash(files[i], memory_dir); });
  return hashes;
}

}  // namespace stretto::data
