#include "data/content_hash.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/byte_stream.h"

namespace stretto::data {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr uint64_t kSettledNs = 2'000'000'000;

std::string stamp_text(const FileStamp& stamp) {
  std::ostringstream text;
  text << "1 " << stamp.size << ' ' << stamp.mtime_ns << ' ' << stamp.inode << ' ' << stamp.device;
  return text.str();
}

uint64_t hash_bytes(const std::filesystem::path& path) {
  const auto bytes = open_plain(path);
  std::vector<char> buffer(kReadBytes);
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

uint64_t content_hash(const std::filesystem::path& path, const std::filesystem::path& memory_dir) {
  const FileStamp stamp = file_stamp(path);
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  const std::filesystem::path memory = memory_dir / hex64(xxh3_64(absolute));
  const std::string expected = stamp_text(stamp);
  std::ifstream remembered(memory);
  std::string known_stamp, known_hash, known_path;
  if (std::getline(remembered, known_stamp) && std::getline(remembered, known_hash) &&
      std::getline(remembered, known_path) && known_stamp == expected && known_path == absolute &&
      known_hash.size() == 16 &&
      known_hash.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return std::stoull(known_hash, nullptr, 16);
  }
  const uint64_t hash = hash_bytes(path);
  if (file_stamp(path) == stamp && stamp.mtime_ns + kSettledNs < now_ns()) {
    write_file_atomic(memory, expected + "\n" + hex64(hash) + "\n" + absolute + "\n");
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
