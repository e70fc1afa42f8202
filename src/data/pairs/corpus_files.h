#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/cache_files.h"
#include "data/checked_file.h"
#include "data/pairs/corpus.h"

namespace stretto::data {

/// The files of one cached corpus, a folder named by its key. All numbers are little-endian.
///
///     ids.bin         token ids of pair 0's source, pair 0's target, pair 1's source, …
///                     (uint16, or uint32 when a vocabulary has more than 65,536 ids)
///     starts.bin      uint64 [pairs + 1]      first id of each pair
///     src_lens.bin    uint32 [pairs]          source tokens of each pair; the rest is its target
///     text.bin        the lines of both sides, in the order of the ids (validation and test only)
///     text_ends.bin   uint64 [2 · pairs]      end of each line in text.bin
///     meta.bin        `CorpusMeta`, written last
///     order-….bin     see data/pairs/corpus_order.h
///
/// meta.bin has a checksum of itself and of each block of the others, so that every byte is
/// verified before it is used (data/checked_file.h).
inline constexpr const char* kIdsFile = "ids.bin";
inline constexpr const char* kStartsFile = "starts.bin";
inline constexpr const char* kSrcLensFile = "src_lens.bin";
inline constexpr const char* kTextFile = "text.bin";
inline constexpr const char* kTextEndsFile = "text_ends.bin";
inline constexpr const char* kMetaFile = "meta.bin";

/// Part of the key: a change of format or of the rules makes new caches.
inline constexpr uint64_t kCorpusVersion = 5;

/// The files whose blocks have checksums in the head, in the order in which they stand there.
inline constexpr std::array<const char*, 5> kSummedFiles{kIdsFile, kStartsFile, kSrcLensFile,
                                                         kTextFile, kTextEndsFile};
using FileSums = std::array<std::vector<uint64_t>, kSummedFiles.size()>;

/// Head of a cached corpus. A corpus is valid when its head has the magic number, the version, the
/// key and its own checksum, and every file has the size that follows from it and blocks with the
/// checksums in it.
struct CorpusMeta {
  uint64_t key = 0;
  uint64_t id_bytes = 2;
  uint64_t has_text = 0;
  uint64_t num_pairs = 0, num_ids = 0, text_bytes = 0;
  uint64_t max_src = 0, max_tgt = 0;  ///< longest sequences, in tokens
  FilterCounts filters;
  TextCounts src_counts, tgt_counts;
  std::vector<uint64_t> segment_ends;  ///< pairs up to and with each input, in order
  FileSums sums;                       ///< as kSummedFiles; empty for files that are not kept
};
/// @param files  of all inputs, for what was left out: it is stored where there is something
std::string encode_meta(const CorpusMeta& meta, std::span<const std::string> files);
std::optional<CorpusMeta> decode_meta(std::string_view bytes, std::span<const std::string> files);

/// Reads the head in `folder` and looks at the sizes; nothing when there is no valid corpus.
/// @param files    of all inputs
/// @param damaged  the file for which there is none although there was a corpus; else left alone
std::optional<CorpusMeta> find_corpus(const std::filesystem::path& folder, uint64_t key,
                                      std::span<const std::string> files, std::string& damaged);

/// Opens one of kSummedFiles, which a corpus with this head has.
CheckedFile open_checked(const std::filesystem::path& folder, const CorpusMeta& meta,
                         const char* name);

/// A new file of a fixed size, mapped for writing in any order. What stands at its path is
/// replaced. Its blocks are allocated first, so that a full disk is an Error(kIo) here and not a
/// signal later.
class WritableMap {
 public:
  WritableMap(std::filesystem::path path, size_t size);
  ~WritableMap();
  WritableMap(const WritableMap&) = delete;
  WritableMap& operator=(const WritableMap&) = delete;
  char* data() const { return static_cast<char*>(data_); }
  void finish();  ///< makes it durable

 private:
  std::filesystem::path path_;
  Descriptor file_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stretto::data
