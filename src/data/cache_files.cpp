#include "data/cache_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"

namespace stretto::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

template <class Id>
void store_as(std::span<const int64_t> ids, std::string& out) {
  const size_t at = out.size();
  out.resize(at + ids.size() * sizeof(Id));
  Id* to = reinterpret_cast<Id*>(out.data() + at);
  for (size_t i = 0; i < ids.size(); ++i) to[i] = static_cast<Id>(ids[i]);
}

template <class Id>
bool copy_ids(const Id* from, uint64_t count, int64_t vocab_size, std::vector<int64_t>& out) {
  bool fits = from != nullptr;
  for (uint64_t i = 0; fits && i < count; ++i) {
    fits = from[i] < static_cast<uint64_t>(vocab_size);
    out.push_back(static_cast<int64_t>(from[i]));
  }
  return fits;
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

bool load_ids(const CheckedFile& file, IdRange range, StoredIds stored, std::vector<int64_t>& out) {
  if (range.begin > range.end) return false;
  const uint64_t count = range.end - range.begin;
  const size_t before = out.size();
  const bool whole =
      stored.id_bytes == 2
          ? copy_ids(file.elements<uint16_t>(range.begin, count), count, stored.vocab_size, out)
          : copy_ids(file.elements<uint32_t>(range.begin, count), count, stored.vocab_size, out);
  if (!whole) out.resize(before);
  return whole;
}

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)), file_(retried([&] {
        return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      })) {
  if (!file_) throw_io_error("cannot create", path_, errno);
  buffer_.reserve(kBufferBytes);
}

void FileWriter::append(const void* data, size_t size) {
  if (buffer_.size() + size > kBufferBytes) flush();
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferBytes) flush();
}

void FileWriter::flush() {
  if (const int failed = failpoint("corpus.write")) throw_io_error("cannot write", path_, failed);
  sums_.update(buffer_.data(), buffer_.size());
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote =
        retried([&] { return ::write(file_.get(), buffer_.data() + done, buffer_.size() - done); });
    if (wrote < 0) throw_io_error("cannot write", path_, errno);
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

void FileWriter::finish() {
  flush();
  if (retried([&] { return ::fsync(file_.get()); }) != 0) {
    throw_io_error("cannot write", path_, errno);
  }
  end();
}

void FileWriter::close() {
  flush();
  end();
}

void FileWriter::end() {
  const int closed = ::close(file_.release());
  if (closed != 0 && errno != EINTR) throw_io_error("cannot write", path_, errno);
}

}  // namespace stretto::data
