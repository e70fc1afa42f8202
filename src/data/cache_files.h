#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "data/block_sums.h"

/// What the files of a cache are made of.
namespace stretto::data {

/// Whether a head can be there: a regular file of no more bytes.
bool is_readable_whole(const std::filesystem::path& path, uint64_t max_bytes);

/// 64-bit words with a checksum as the last one, the form of every head in the cache.
std::string seal_words(std::vector<uint64_t> words);
/// The words before a right checksum, or nothing.
std::optional<std::vector<uint64_t>> unseal_words(std::string_view bytes);

/// Its length, then the words of a list.
void append_list(std::vector<uint64_t>& words, const std::vector<uint64_t>& list);
/// Reads such a list at `at`, and moves on. @return false where there is none
bool take_list(const std::vector<uint64_t>& words, size_t& at, std::vector<uint64_t>& list);

/// Bytes in which a cache stores an id: 2, or 4 where a vocabulary has more than 65,536.
constexpr uint64_t bytes_of_ids(int64_t vocab_size) {
  return vocab_size <= 65536 ? 2 : 4;
}
/// Appends ids as they are stored.
void store_ids(std::span<const int64_t> ids, uint64_t id_bytes, std::string& out);

/// How ids were stored, and how many a vocabulary has.
struct StoredIds {
  uint64_t id_bytes = 2;
  int64_t vocab_size = 0;
};
/// Ids [begin, end) of a part.
struct IdRange {
  uint64_t begin = 0, end = 0;
};
/// Appends ids of a part that has them alone. @return false, and nothing was appended, where they
/// are not all there, or an id is outside of the vocabulary, which would be read as a row outside
/// of an embedding table
bool load_ids(std::string_view part, IdRange range, StoredIds stored, std::vector<int64_t>& out);

/// A file that is written from front to back through a buffer.
/// Everything throws Error(kIo) with the system's reason, and where to put the cache else; the
/// destructor closes and is silent.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);  ///< which must not exist
  void append(const void* data, size_t size);
  void close();  ///< writes what is left; without fsync, since all is verified before it is used
  std::vector<uint64_t> sums() { return sums_.finish(); }  ///< of the blocks, once, at the end

 private:
  void flush();
  std::filesystem::path path_;
  std::string buffer_;
  BlockSums sums_;
  Descriptor file_;
};

}  // namespace stretto::data
