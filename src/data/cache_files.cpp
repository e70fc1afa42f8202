#include "data/cache_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/cache_folder.h"

namespace stretto::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the cache is little-endian");

constexpr size_t kBufferBytes = size_t{1} << 20;

template <class Id>
void store_as(std::span<const int64_t> ids, std::string& out) {
  const size_t at = out.size();
  out.resize(at + ids.size() * sizeof(Id));
  Id* to = reinterpret_cast<Id*>(out.data() + at);
  for (size_t i = 0; i < ids.size(); ++i) to[i] = static_cast<Id>(ids[i]);
}

template <class Id>
bool copy_ids(std::string_view part, IdRange range, int64_t vocab_size, std::vector<int64_t>& out) {
  const uint64_t size = part.size() / sizeof(Id);
  if (range.begin > range.end || range.end > size) return false;
  const Id* const ids = reinterpret_cast<const Id*>(part.data());
  const size_t before = out.size();
  out.insert(out.end(), ids + range.begin, ids + range.end);
  const auto is_outside = [&](int64_t id) { return id >= vocab_size; };
  if (std::none_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), is_outside)) {
    return true;
  }
  out.resize(before);
  return false;
}

[[noreturn]] void throw_write_error(std::string_view action, const std::filesystem::path& path,
                                    int errno_value) {
  try {
    throw_io_error(action, path, errno_value);
  } catch (const Error& failure) {
    throw_cache_unwritten(failure);
  }
}

}  // namespace

bool is_readable_whole(const std::filesystem::path& path, uint64_t max_bytes) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) return false;
  const auto size = std::filesystem::file_size(path, failure);
  return !failure && size <= max_bytes;
}

std::string seal_words(std::vector<uint64_t> words) {
  words.push_back(xxh3_64(words.data(), words.size() * sizeof(uint64_t)));
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

std::optional<std::vector<uint64_t>> unseal_words(std::string_view bytes) {
  if (bytes.size() < sizeof(uint64_t) || bytes.size() % sizeof(uint64_t) != 0) return std::nullopt;
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const uint64_t checksum = words.back();
  words.pop_back();
  if (xxh3_64(words.data(), words.size() * sizeof(uint64_t)) != checksum) return std::nullopt;
  return words;
}

void append_list(std::vector<uint64_t>& words, const std::vector<uint64_t>& list) {
  words.push_back(list.size());
  words.insert(words.end(), list.begin(), list.end());
}

bool take_list(const std::vector<uint64_t>& words, size_t& at, std::vector<uint64_t>& list) {
  if (at >= words.size() || words[at] > words.size() - at - 1) return false;
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at) + 1;
  list.assign(begin, begin + static_cast<std::ptrdiff_t>(words[at]));
  at += 1 + list.size();
  return true;
}

void store_ids(std::span<const int64_t> ids, uint64_t id_bytes, std::string& out) {
  if (id_bytes == 2) {
    store_as<uint16_t>(ids, out);
  } else {
    store_as<uint32_t>(ids, out);
  }
}

bool load_ids(std::string_view part, IdRange range, StoredIds stored, std::vector<int64_t>& out) {
  return stored.id_bytes == 2 ? copy_ids<uint16_t>(part, range, stored.vocab_size, out)
                              : copy_ids<uint32_t>(part, range, stored.vocab_size, out);
}

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)), file_(retried([&] {
        return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      })) {
  if (!file_) throw_write_error("cannot create", path_, errno);
  buffer_.reserve(kBufferBytes);
}

void FileWriter::append(const void* data, size_t size) {
  if (buffer_.size() + size > kBufferBytes) flush();
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferBytes) flush();
}

void FileWriter::flush() {
  if (const int failed = failpoint("corpus.write")) {
    throw_write_error("cannot write", path_, failed);
  }
  sums_.update(buffer_.data(), buffer_.size());
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote =
        retried([&] { return ::write(file_.get(), buffer_.data() + done, buffer_.size() - done); });
    if (wrote < 0) throw_write_error("cannot write", path_, errno);
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

void FileWriter::close() {
  flush();
  const int closed = ::close(file_.release());
  if (closed != 0 && errno != EINTR) throw_write_error("cannot write", path_, errno);
}

}  // namespace stretto::data
