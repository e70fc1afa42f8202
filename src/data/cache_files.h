#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "data/checked_file.h"

/// What the files of all token caches are made of.
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

/// A file that is written from front to back through a buffer.
/// Everything throws Error(kIo) with the system's reason; the destructor closes and is silent.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);  ///< which must not exist
  void append(const void* data, size_t size);
  void finish();                                           ///< writes what is left, fsync, close
  std::vector<uint64_t> sums() { return sums_.finish(); }  ///< of the blocks, once, at the end

 private:
  void flush();
  std::filesystem::path path_;
  std::string buffer_;
  BlockSums sums_;
  Descriptor file_;
};

}  // namespace stretto::data
