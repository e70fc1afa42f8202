#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/ngram/arpa.h"

namespace stretto::text {

/// An ARPA text in KenLM's probing form (ngram/probing_model.h), with words. KenLM reads it, too.
///
/// SRILM leaves out n-grams that pruning removed, though longer ones end like them. They are added
/// with the probability that back-off gives them, since a search goes from short to long.
class ProbingFile {
 public:
  /// Throws what read_arpa() throws, and Error(kBadData) with its line for an n-gram that is there
  /// twice, has a word that is no unigram, or begins with words that are no n-gram, so that its
  /// back-off would lead nowhere.
  ProbingFile(ArpaLines& lines, const std::string& place);

  /// All bytes, in their order.
  void write(const std::function<void(std::string_view)>& put) const;
  std::string bytes() const;

 private:
  struct Entry {
    uint64_t key = 0;
    float prob = 0, backoff = 0;
  };
  /// The n-grams of an order as they came, and where each key is.
  class Order {
   public:
    Entry* find(uint64_t key);
    const Entry* find(uint64_t key) const { return const_cast<Order*>(this)->find(key); }
    /// @return false = it is there
    bool add(const Entry& entry);
    const std::vector<Entry>& entries() const { return entries_; }

   private:
    void place(uint32_t entry);
    std::vector<Entry> entries_;
    std::vector<uint32_t> places_ = std::vector<uint32_t>(16);  ///< entry + 1; 0 = empty
  };

  void add_unigram(const ArpaNgram& ngram);
  void add_ngram(const ArpaNgram& ngram);
  /// Adds endings of an n-gram that are missing.
  void add_endings(const std::vector<uint64_t>& keys, const std::vector<uint64_t>& contexts,
                   size_t length);
  Entry& entry_of(uint64_t key, size_t length);
  float backoff_of(uint64_t key, size_t length);
  uint32_t word_index(std::string_view word) const;  ///< 0 = none
  [[noreturn]] void fail(const ArpaNgram& ngram, const std::string& what) const;

  const std::string place_;
  uint64_t num_unigrams_ = 0;    ///< as the text promises
  std::string words_;            ///< with a 0 behind each
  std::vector<Entry> unigrams_;  ///< by index; the key counts for nothing
  Order vocabulary_;             ///< of hashes of words; a word's index is the place + 1
  std::vector<Order> orders_;    ///< from order 2 on
  bool has_unknown_ = false;
};

}  // namespace stretto::text
