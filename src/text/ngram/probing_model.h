#pragma once

#include <string>
#include <vector>

#include "text/ngram/kenlm_file.h"
#include "text/ngram/ngram_model.h"

namespace stretto::text {

/// A hash table with linear probing, as it lies in a file: entries of a key u64 and what belongs to
/// it; key 0 = empty.
template <size_t kEntryBytes>
struct ProbingTable {
  const char* first = nullptr;
  uint64_t buckets = 1;

  /// The entry of a key, or nullptr. A table without an empty bucket ends the search, too.
  const char* find(uint64_t key) const {
    uint64_t at = key % buckets;
    for (uint64_t tried = 0; tried < buckets; ++tried) {
      const char* entry = first + at * kEntryBytes;
      const auto found = load_value<uint64_t>(entry);
      if (found == 0) return nullptr;
      if (found == key) return entry;
      if (++at == buckets) at = 0;
    }
    return nullptr;
  }
};

/// KenLM's probing form, which is also that of ARPA files in the cache (ngram/probing_file.h):
///
///     vocabulary   version u32 = 0, words u32, table of (hash of the word, index u32)
///     unigrams     (prob f32, back-off f32) [words + 1]
///     2, …         a table for each order of (key, prob f32, back-off f32)
///     the longest  a table of (key, prob f32)
///
/// A prob with the sign of a positive number has n-grams with further words in front of it.
class ProbingModel final : public NgramModel {
 public:
  /// Throws Error(kBadData) for a file that is too short for its head.
  ProbingModel(ModelBytes bytes, const std::string& place);

  int order() const override { return head_.order(); }
  uint32_t num_words() const override { return num_words_; }
  uint32_t index(std::string_view word) const override;
  std::string_view word(uint32_t index) const override { return words_.word(index); }
  bool has_strings() const override { return !words_.empty(); }
  float score(const NgramState& history, uint32_t word, NgramState& next) const override;

 private:
  ModelBytes bytes_;
  KenlmHead head_;
  uint32_t num_words_ = 0;
  ProbingTable<12> vocabulary_;
  const char* unigrams_ = nullptr;
  std::vector<ProbingTable<16>> middle_;  ///< order 2 to the last but one
  ProbingTable<12> longest_;
  KenlmWords words_;
};

}  // namespace stretto::text
