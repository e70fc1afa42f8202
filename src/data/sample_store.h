#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/cache_files.h"
#include "data/store_use.h"

namespace stretto::data {

class SampleStore;
class SampleStoreWriter;

/// Fills the parts. @return the words of the head
using StoreBuild = std::function<std::vector<uint64_t>(SampleStoreWriter&)>;

/// A store in the cache.
struct StorePlace {
  std::filesystem::path root;  ///< of the cache, by open_cache()
  std::string kind;            ///< what its reader calls it, a name for files: "documents"
  uint64_t key = 0;            ///< of everything that shapes the parts
  size_t num_parts = 0;
  int64_t threads = 1;
  /// Whether the parts belong together, as their reader relies on; empty = any do. A store that it
  /// refuses is damaged.
  std::function<bool(const SampleStore&)> is_sound = {};

  std::filesystem::path folder() const;
};

/// Samples that were read once, as parts of bytes: texts one after the other, the ends of them, ids
/// of tokens, labels. A reader says what its parts and the words of its head are. They lie in a
/// folder of the cache, or in memory where there is no cache.
///
///     PART.bin    the bytes of a part, PART = 0, 1, …
///     head.bin    key, sizes, checksums of all blocks (data/cache_files.h), words; written last
///     opened.KIND when it was opened last, and who has it open (data/store_use.h)
///
/// All blocks were right when the store was opened: so a build need not wait for the disk, and what
/// a loss of power tears is made again. Safe to use from several threads.
class SampleStore {
 public:
  std::string_view part(size_t number) const;
  /// A part as an array of T, whose bytes it was written as.
  template <class T>
  std::span<const T> array(size_t number) const {
    const std::string_view bytes = part(number);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  const std::vector<uint64_t>& words() const { return words_; }
  bool from_cache() const { return from_cache_; }
  uint64_t num_bytes() const;

 private:
  friend class SampleStoreWriter;
  friend std::optional<SampleStore> read_samples(const StorePlace& place);
  friend SampleStore open_samples(const StorePlace& place, const StoreBuild& build);
  StoreUse use_;
  std::vector<MappedFile> files_;
  std::vector<std::string> memory_;
  std::vector<uint64_t> words_;
  bool from_cache_ = false;
};

/// Writes the parts of a store, each from front to back.
class SampleStoreWriter {
 public:
  /// @param folder  empty: the parts stay in memory
  SampleStoreWriter(const std::filesystem::path& folder, size_t num_parts);
  void append(size_t part, std::string_view bytes);
  template <class T>
  void append_values(size_t part, std::span<const T> values) {
    append(part, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  template <class T>
  void append_value(size_t part, T value) {
    append_values<T>(part, {&value, 1});
  }
  /// Ends the files, and writes the head. Throws Error(kIo).
  void finish(uint64_t key, const std::vector<uint64_t>& words);
  /// What was written in memory, once.
  SampleStore take(std::vector<uint64_t> words);

 private:
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<FileWriter>> files_;
  std::vector<uint64_t> sizes_;
  std::vector<std::string> memory_;
};

/// A store that lies whole in its place; nothing where there is none.
/// @param damaged  whether there is something else instead
std::optional<SampleStore> find_samples(const StorePlace& place, bool& damaged);

/// Finds a store, or builds it: under a lock, beside its place, then renamed. One that is damaged
/// is built again, with a warning. With a new store, those of its kind that were not used for long
/// are removed. Throws what `build` does, and Error(kIo).
SampleStore open_samples(const StorePlace& place, const StoreBuild& build);
SampleStore samples_in_memory(size_t num_parts, const StoreBuild& build);

/// Text in the words of a head. @return false where there is none
void append_text(std::vector<uint64_t>& words, std::string_view text);
bool take_text(std::span<const uint64_t> words, size_t& at, std::string& text);

}  // namespace stretto::data
