#include "data/corpus_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/pair_filter.h"

namespace stretto::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the cache is little-endian");

constexpr uint64_t kMagic = 0x3150524F43525453;  // "STRCORP1"
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kMaxMetaBytes = size_t{64} << 20;
constexpr size_t kCountWords = 10;  // where the counts begin
constexpr size_t kWordsOfLine = 3;
constexpr std::array<int64_t TextCounts::*, 3> kTextCounts{&TextCounts::words, &TextCounts::pieces,
                                                           &TextCounts::unknown};

// Words before the list of segments: head, `kept`, then for each kind its count and first lines,
// then the counts of both sides' text.
size_t fixed_words() {
  const size_t of_kind = 1 + kWordsOfLine * std::tuple_size_v<FirstLines>;
  return kCountWords + 1 + filter_kinds().size() * of_kind + 2 * kTextCounts.size();
}

bool has_size(const std::filesystem::path& file, uint64_t size) {
  std::error_code failure;
  const auto actual = std::filesystem::file_size(file, failure);
  return !failure && actual == size;
}

}  // namespace

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

std::string encode_meta(const CorpusMeta& meta) {
  std::vector<uint64_t> words{kMagic,        kCorpusVersion, meta.key,     meta.id_bytes,
                              meta.has_text, meta.num_pairs, meta.num_ids, meta.text_bytes,
                              meta.max_src,  meta.max_tgt};
  words.push_back(static_cast<uint64_t>(meta.filters.kept));
  for (const FilterKind& kind : filter_kinds()) {
    words.push_back(static_cast<uint64_t>(meta.filters.*kind.count));
    for (const FilteredLine& line : meta.filters.*kind.first) {
      words.push_back(static_cast<uint64_t>(line.input));
      words.push_back(static_cast<uint64_t>(line.line));
      words.push_back(line.target ? 1 : 0);
    }
  }
  for (const TextCounts* side : {&meta.src_counts, &meta.tgt_counts}) {
    for (const auto count : kTextCounts) words.push_back(static_cast<uint64_t>(side->*count));
  }
  words.insert(words.end(), meta.segment_ends.begin(), meta.segment_ends.end());
  return seal_words(std::move(words));
}

std::optional<CorpusMeta> decode_meta(std::string_view bytes) {
  const auto words = unseal_words(bytes);
  if (!words || words->size() < fixed_words()) return std::nullopt;
  const std::vector<uint64_t>& w = *words;
  if (w[0] != kMagic || w[1] != kCorpusVersion || (w[3] != 2 && w[3] != 4)) return std::nullopt;
  CorpusMeta meta{.key = w[2],
                  .id_bytes = w[3],
                  .has_text = w[4],
                  .num_pairs = w[5],
                  .num_ids = w[6],
                  .text_bytes = w[7],
                  .max_src = w[8],
                  .max_tgt = w[9]};
  size_t at = kCountWords;
  meta.filters.kept = static_cast<int64_t>(w[at++]);
  for (const FilterKind& kind : filter_kinds()) {
    meta.filters.*kind.count = static_cast<int64_t>(w[at++]);
    for (FilteredLine& line : meta.filters.*kind.first) {
      line = {.input = static_cast<int64_t>(w[at]),
              .line = static_cast<int64_t>(w[at + 1]),
              .target = w[at + 2] != 0};
      at += kWordsOfLine;
    }
  }
  for (TextCounts* side : {&meta.src_counts, &meta.tgt_counts}) {
    for (const auto count : kTextCounts) side->*count = static_cast<int64_t>(w[at++]);
  }
  meta.segment_ends.assign(w.begin() + static_cast<std::ptrdiff_t>(at), w.end());
  return meta;
}

std::optional<CorpusMeta> find_corpus(const std::filesystem::path& folder, uint64_t key) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(folder / kMetaFile, failure)) return std::nullopt;
  const auto meta = decode_meta(read_file(folder / kMetaFile, kMaxMetaBytes));
  if (!meta || meta->key != key) return std::nullopt;
  const uint64_t pairs = meta->num_pairs;
  bool valid = has_size(folder / kIdsFile, meta->num_ids * meta->id_bytes) &&
               has_size(folder / kStartsFile, (pairs + 1) * 8) &&
               has_size(folder / kSrcLensFile, pairs * 4);
  if (meta->has_text != 0) {
    valid = valid && has_size(folder / kTextFile, meta->text_bytes) &&
            has_size(folder / kTextEndsFile, pairs * 16);
  }
  return valid ? meta : std::nullopt;
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw_io_error("cannot create", path_, errno);
  buffer_.reserve(kBufferBytes);
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::append(const void* data, size_t size) {
  if (buffer_.size() + size > kBufferBytes) flush();
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferBytes) flush();
}

void FileWriter::flush() {
  if (const int failed = failpoint("corpus.write")) throw_io_error("cannot write", path_, failed);
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw_io_error("cannot write", path_, errno);
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

void FileWriter::finish() {
  flush();
  if (::fsync(fd_) != 0) throw_io_error("cannot write", path_, errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) throw_io_error("cannot write", path_, errno);
}

WritableMap::WritableMap(std::filesystem::path path, size_t size)
    : path_(std::move(path)), size_(size) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw_io_error("cannot create", path_, errno);
  if (size == 0) return;
  const int failed = ::posix_fallocate(fd_, 0, static_cast<off_t>(size));
  void* mapped = MAP_FAILED;
  if (failed == 0) mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) {
    const int reason = failed != 0 ? failed : errno;
    ::close(fd_);
    throw_io_error("cannot make room for", path_, reason);
  }
  data_ = mapped;
}

WritableMap::~WritableMap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  ::close(fd_);
}

void WritableMap::finish() {
  if (data_ != nullptr && ::msync(data_, size_, MS_SYNC) != 0) {
    throw_io_error("cannot write", path_, errno);
  }
  if (::fsync(fd_) != 0) throw_io_error("cannot write", path_, errno);
}

}  // namespace stretto::data
