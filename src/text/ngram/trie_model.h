#pragma once

#include <string>
#include <vector>

#include "text/ngram/kenlm_file.h"
#include "text/ngram/ngram_model.h"

namespace stretto::text {

/// Entries of one order of a trie, bit by bit: the word in front of what came before, then its
/// numbers, then where its own entries begin in the next order (not in the longest).
struct PackedEntries {
  const char* first = nullptr;
  uint64_t count = 0;
  uint64_t next_count = 0;  ///< entries of the next order
  uint32_t word_bits = 0;
  uint32_t number_bits = 0;  ///< of prob and back-off
  uint32_t next_bits = 0;    ///< of a place in the next order, as far as it stands here
  /// Array of the first entries whose places have each value of the high bits that do not stand
  /// here (Raj and Whittaker 2003); empty = all bits stand here.
  const char* high = nullptr;
  uint64_t num_high = 0;

  uint32_t total_bits() const { return word_bits + number_bits + next_bits; }
};

/// Places [begin, end) in an order.
struct EntryRange {
  uint64_t begin = 0, end = 0;
};

/// KenLM's trie, plain, with quantised numbers, with places as arrays, or with both:
///
///     vocabulary   words without `<unk>` u64, hashes of words u64 in order; the index is the place
///                  + 1
///     tables       of quantised numbers: version, bits of a prob, bits of a back-off, 5 bytes; for
///                  each middle order probs f32, back-offs f32; then those of the longest
///     unigrams     (prob f32, back-off f32, first entry of order 2 u64) [words + 1]
///     2, …         PackedEntries; in front of them the array of places, if there is one
class TrieModel final : public NgramModel {
 public:
  /// Throws Error(kBadData) for a file that is too short for its head.
  TrieModel(ModelBytes bytes, const std::string& place);

  int order() const override { return head_.order(); }
  uint32_t num_words() const override { return num_words_; }
  uint32_t index(std::string_view word) const override;
  std::string_view word(uint32_t index) const override { return words_.word(index); }
  bool has_strings() const override { return !words_.empty(); }
  float score(const NgramState& history, uint32_t word, NgramState& next) const override;

 private:
  class Layout;
  bool is_quantised() const;
  bool has_arrays() const;
  void place_tables(Layout& layout);
  void place_orders(Layout& layout);
  /// The numbers of entry `at`.
  float prob(size_t order_minus_2, uint64_t at) const;
  float backoff(size_t order_minus_2, uint64_t at) const;

  ModelBytes bytes_;
  KenlmHead head_;
  std::string place_;
  uint32_t num_words_ = 0;
  const char* hashes_ = nullptr;
  uint32_t prob_bits_ = 0, backoff_bits_ = 0;
  std::vector<const char*> prob_tables_, backoff_tables_;  ///< by order - 2
  const char* unigrams_ = nullptr;
  std::vector<PackedEntries> orders_;  ///< by order - 2
  KenlmWords words_;
};

}  // namespace stretto::text
