#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

/// Binary files of KenLM (Heafield 2011), version 5, little-endian:
///
///     magic text, test values: kTestedBytes of kenlm_file.cpp
///     order u8, padding, probing multiplier f32, kind u32, has strings u8, padding, version u32
///     n-grams of each order u64 [order]             the head ends at a multiple of 8
///     vocabulary, n-grams                           by kind: probing_model.h, trie_model.h
///     words, each with a 0 behind it, `<unk>` first where there are strings
namespace stretto::text {

enum class KenlmKind : uint32_t {
  kProbing = 0,
  kRestProbing = 1,
  kTrie = 2,
  kQuantTrie = 3,
  kArrayTrie = 4,
  kQuantArrayTrie = 5,
};

struct KenlmHead {
  KenlmKind kind = KenlmKind::kProbing;
  float probing_multiplier = 1.5F;
  bool has_strings = true;
  uint32_t version = 0;
  std::vector<uint64_t> counts;  ///< n-grams of order 1, 2, …

  int order() const { return static_cast<int>(counts.size()); }
  size_t bytes() const;  ///< until the vocabulary
};

/// Whether a file says that it is one of KenLM, of any version.
bool is_kenlm(std::string_view bytes);
/// Throws Error(kBadData), naming `place`, for a head that is cut off, of another version or out of
/// range: order 2 to kMaxNgramOrder.
KenlmHead read_kenlm_head(std::string_view bytes, const std::string& place);
std::string kenlm_head_bytes(const KenlmHead& head);

/// MurmurHash64A with seed 0 (Appleby): how KenLM knows a word.
uint64_t kenlm_word_hash(std::string_view word);
/// Buckets of a hash table.
uint64_t kenlm_buckets(uint64_t entries, float multiplier);
/// The key of an n-gram with one more word in front; that of a unigram is the word's index.
inline uint64_t kenlm_extended(uint64_t key, uint32_t word) {
  return (key * 8978948897894561157ULL) ^
         ((1 + static_cast<uint64_t>(word)) * 17894857484156487943ULL);
}

/// A value at any place of the mapped bytes.
template <class T>
T load_value(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// A back-off of -0 says that no n-gram goes on from here.
inline bool goes_on(float backoff) {
  uint32_t bits;
  std::memcpy(&bits, &backoff, sizeof(bits));
  return bits != 0x80000000U;
}

/// The words behind the n-grams.
class KenlmWords {
 public:
  KenlmWords() = default;
  /// Throws Error(kBadData) unless there are `count` words, `<unk>` first.
  KenlmWords(std::string_view bytes, uint32_t count, const std::string& place);
  std::string_view word(uint32_t index) const;
  bool empty() const { return begins_.empty(); }

 private:
  std::string_view bytes_;
  std::vector<uint64_t> begins_;  ///< [count + 1]
};

/// The bytes of a model: a mapped file, or what was made in memory.
class ModelBytes {
 public:
  explicit ModelBytes(MappedFile file) : file_(std::move(file)) {}
  explicit ModelBytes(std::string bytes) : held_(std::move(bytes)) {}
  std::string_view view() const { return held_.empty() ? file_.bytes() : std::string_view(held_); }

 private:
  MappedFile file_;
  std::string held_;
};

/// What all messages on a damaged file say.
[[noreturn]] void throw_bad_kenlm(const std::string& place, const std::string& what);

}  // namespace stretto::text
