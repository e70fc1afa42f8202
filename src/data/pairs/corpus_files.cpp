#include "data/pairs/corpus_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/pairs/pair_filter.h"

namespace stretto::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the cache is little-endian");

constexpr uint64_t kMagic = 0x3150524F43525453;  // "STRCORP1"
constexpr size_t kMaxMetaBytes = size_t{1} << 30;
constexpr size_t kCountWords = 10;  // where the counts begin
constexpr size_t kWordsOfLine = 3;
constexpr std::array<int64_t TextCounts::*, 4> kTextCounts{&TextCounts::words, &TextCounts::pieces,
                                                           &TextCounts::unknown, &TextCounts::cut};

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

/// Bytes of each of kSummedFiles.
std::array<uint64_t, kSummedFiles.size()> sizes_of(const CorpusMeta& meta) {
  const uint64_t text = meta.has_text != 0 ? 1 : 0;
  return {meta.num_ids * meta.id_bytes, (meta.num_pairs + 1) * 8, meta.num_pairs * 4,
          meta.text_bytes * text, meta.num_pairs * 16 * text};
}

bool has_file(const CorpusMeta& meta, std::string_view name) {
  return meta.has_text != 0 || (name != kTextFile && name != kTextEndsFile);
}

}  // namespace

std::string encode_meta(const CorpusMeta& meta, std::span<const std::string> files) {
  std::vector<uint64_t> words{kMagic,        kCorpusVersion, meta.key,     meta.id_bytes,
                              meta.has_text, meta.num_pairs, meta.num_ids, meta.text_bytes,
                              meta.max_src,  meta.max_tgt};
  words.push_back(static_cast<uint64_t>(meta.filters.kept));
  for (const FilterKind& kind : filter_kinds()) {
    words.push_back(static_cast<uint64_t>(meta.filters.*kind.count));
    for (const FilteredLine& line : meta.filters.*kind.first) {
      words.push_back(static_cast<uint64_t>(line.input));
      words.push_back(static_cast<uint64_t>(line.line));
      words.push_back(static_cast<uint64_t>(line.side));
    }
  }
  for (const TextCounts* side : {&meta.src_counts, &meta.tgt_counts}) {
    for (const auto count : kTextCounts) words.push_back(static_cast<uint64_t>(side->*count));
  }
  append_list(words, meta.segment_ends);
  for (const auto& sums : meta.sums) append_list(words, sums);
  if (meta.filters.left_out.count > 0) append_left_out(words, meta.filters.left_out, files);
  return seal_words(std::move(words));
}

std::optional<CorpusMeta> decode_meta(std::string_view bytes, std::span<const std::string> files) {
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
      if (w[at + 2] > static_cast<uint64_t>(Side::kSecondSource)) return std::nullopt;
      line = {.input = static_cast<int64_t>(w[at]),
              .line = static_cast<int64_t>(w[at + 1]),
              .side = static_cast<Side>(w[at + 2])};
      at += kWordsOfLine;
    }
  }
  for (TextCounts* side : {&meta.src_counts, &meta.tgt_counts}) {
    for (const auto count : kTextCounts) side->*count = static_cast<int64_t>(w[at++]);
  }
  bool whole = take_list(w, at, meta.segment_ends);
  for (auto& sums : meta.sums) whole = whole && take_list(w, at, sums);
  if (whole && at < w.size()) whole = take_left_out(w, at, files, meta.filters.left_out);
  if (!whole || at != w.size()) return std::nullopt;
  return meta;
}

std::optional<CorpusMeta> find_corpus(const std::filesystem::path& folder, uint64_t key,
                                      std::span<const std::string> files, std::string& damaged) {
  std::error_code failure;
  if (!std::filesystem::exists(folder, failure)) return std::nullopt;
  std::optional<CorpusMeta> meta;
  if (is_readable_whole(folder / kMetaFile, kMaxMetaBytes)) {
    meta = decode_meta(read_file(folder / kMetaFile, kMaxMetaBytes), files);
  }
  if (!meta || meta->key != key) {
    damaged = kMetaFile;
    return std::nullopt;
  }
  const auto sizes = sizes_of(*meta);
  for (size_t i = 0; i < kSummedFiles.size(); ++i) {
    const char* const name = kSummedFiles[i];
    if (!has_file(*meta, name) || has_size(folder / name, sizes[i])) continue;
    damaged = name;
    return std::nullopt;
  }
  return meta;
}

CheckedFile open_checked(const std::filesystem::path& folder, const CorpusMeta& meta,
                         const char* name) {
  // Compared as text: equal literals of two files need not have one address.
  const auto found = std::find(kSummedFiles.begin(), kSummedFiles.end(), std::string_view(name));
  return {folder / name, meta.sums[static_cast<size_t>(found - kSummedFiles.begin())]};
}

WritableMap::WritableMap(std::filesystem::path path, size_t size)
    : path_(std::move(path)), size_(size) {
  ::unlink(path_.c_str());  // a link is not followed, and what a killed process left is in no use
  file_.reset(
      retried([&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }));
  if (!file_) throw_io_error("cannot create", path_, errno);
  if (size == 0) return;
  int failed = 0;
  do {  // it returns its error
    failed = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(size));
  } while (failed == EINTR);
  if (failed != 0) throw_io_error("cannot make room for", path_, failed);
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) throw_io_error("cannot make room for", path_, errno);
  data_ = mapped;
}

WritableMap::~WritableMap() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void WritableMap::finish() {
  if (data_ != nullptr && retried([&] { return ::msync(data_, size_, MS_SYNC); }) != 0) {
    throw_io_error("cannot write", path_, errno);
  }
  if (retried([&] { return ::fsync(file_.get()); }) != 0) {
    throw_io_error("cannot write", path_, errno);
  }
}

}  // namespace stretto::data
