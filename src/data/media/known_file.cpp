#include "data/media/known_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/io_error.h"
#include "base/text.h"
#include "data/bad_samples.h"

namespace stretto::data {
namespace {

constexpr size_t kMediaReadBytes = size_t{1} << 18;

/// Reads a file from its beginning. @return the bytes that were there
template <class Take>
uint64_t read_through(const Descriptor& file, const std::string& path, const Take& take) {
  std::vector<char> buffer(kMediaReadBytes);
  uint64_t at = 0;
  while (true) {
    const ssize_t got = retried(
        [&] { return ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(at)); });
    if (got < 0) throw_io_error("cannot read", path, errno);
    if (got == 0) return at;
    take(std::string_view(buffer.data(), static_cast<size_t>(got)));
    at += static_cast<uint64_t>(got);
  }
}

[[noreturn]] void throw_changed(const std::string& path, uint64_t now, uint64_t then) {
  throw SampleError(path,
                    ": has changed since it was looked at (" +
                        with_thousands(static_cast<int64_t>(now)) + " bytes now, " +
                        with_thousands(static_cast<int64_t>(then)) + " then)",
                    "put the file of then back, or start again with --accept-data");
}

}  // namespace

uint64_t stamp_hash(const FileStamp& stamp) {
  return xxh3_64(stamp_text(stamp));
}

Descriptor open_known(const std::string& path, const KnownFile& known) {
  Descriptor file;
  try {
    file = open_to_read(path);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;  // "no such file"
    throw SampleError(path, ": is not there any more",
                      "put the file back, or start again with --accept-data");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_io_error("cannot look at", path, errno);
  const FileStamp stamp = stamp_of(info);
  if (stamp_hash(stamp) == known.stamp) return file;
  Xxh3Stream hash;
  if (stamp.size == known.bytes) {
    read_through(file, path, [&](std::string_view part) { hash.update(part.data(), part.size()); });
    if (hash.digest() == known.hash) return file;
  }
  throw_changed(path, stamp.size, known.bytes);
}

std::string read_known(const std::string& path, const KnownFile& known) {
  const Descriptor file = open_known(path, known);
  std::string bytes;
  bytes.reserve(known.bytes);
  const uint64_t got = read_through(file, path, [&](std::string_view part) { bytes += part; });
  if (got != known.bytes) throw_changed(path, got, known.bytes);
  return bytes;
}

}  // namespace stretto::data
