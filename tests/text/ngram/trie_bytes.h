#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/text/ngram/random_ngrams.h"
#include "text/ngram/kenlm_file.h"

namespace stretto::testing {

/// Writes KenLM's trie as text/ngram/trie_model.h describes it, bit by bit.
class TrieBytes {
 public:
  /// @param number_bits  of a quantised prob and back-off; 0 = floats
  /// @param array_bits   the most bits of a place that stand in an array; 0 = all stand inline
  TrieBytes(const RandomNgrams& model, uint32_t number_bits, uint32_t array_bits)
      : model_(model), number_bits_(number_bits), array_bits_(array_bits) {
    index_words();
    sort_ngrams();
  }

  std::string bytes() {
    text::KenlmHead head;
    head.version = 1;
    head.kind =
        static_cast<text::KenlmKind>(2 + (number_bits_ > 0 ? 1 : 0) + (array_bits_ > 0 ? 2 : 0));
    for (const auto& entries : sorted_) head.counts.push_back(entries.size());
    bytes_ = text::kenlm_head_bytes(head);
    put<uint64_t>(hashes_.size());
    for (const uint64_t hash : hashes_) put(hash);
    put<uint64_t>(0);  // room for `<unk>`, which has no hash
    if (number_bits_ > 0) put_tables();
    put_unigrams();
    for (size_t n = 1; n < sorted_.size(); ++n) put_order(n);
    bytes_ += std::string("<unk>") + '\0';
    for (const std::string& name : names_) bytes_ += name + '\0';
    return bytes_;
  }

 private:
  /// Indices of words, the last word first.
  using Key = std::vector<uint32_t>;
  struct Entry {
    Key key;
    float prob, backoff;
  };

  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static void or_bits(std::string& to, uint64_t bit, uint64_t value) {
    uint64_t word;
    std::memcpy(&word, to.data() + bit / 8, 8);
    word |= value << (bit % 8);
    std::memcpy(to.data() + bit / 8, &word, 8);
  }

  void index_words() {
    std::map<uint64_t, int> by_hash;
    for (int word = 0; word < model_.num_words; ++word)
      by_hash[text::kenlm_word_hash(RandomNgrams::name(word))] = word;
    index_of_.resize(static_cast<size_t>(model_.num_words));
    for (const auto& [hash, word] : by_hash) {
      hashes_.push_back(hash);
      names_.push_back(RandomNgrams::name(word));
      index_of_[static_cast<size_t>(word)] = static_cast<uint32_t>(hashes_.size());
    }
  }

  void sort_ngrams() {
    std::set<RandomNgrams::Words> contexts;
    for (const auto& [words, numbers] : model_.numbers)
      contexts.emplace(words.begin(), words.end() - 1);
    sorted_.resize(model_.of_order.size());
    sorted_[0].push_back({{0}, -100.0F, -0.0F});  // <unk>
    for (const auto& [words, numbers] : model_.numbers) {
      Entry entry{{}, numbers.first, numbers.second};
      if (entry.backoff == 0) entry.backoff = contexts.contains(words) ? 0.0F : -0.0F;
      for (size_t i = words.size(); i-- > 0;)
        entry.key.push_back(index_of_[static_cast<size_t>(words[i])]);
      sorted_[words.size() - 1].push_back(entry);
    }
    for (auto& entries : sorted_) {
      std::sort(entries.begin(), entries.end(),
                [](const Entry& a, const Entry& b) { return a.key < b.key; });
    }
  }

  /// Where the longer n-grams begin that end as this one does.
  uint64_t next_of(size_t n, size_t i) const {
    const auto& longer = sorted_[n + 1];
    if (i == sorted_[n].size()) return longer.size();
    const auto place =
        std::lower_bound(longer.begin(), longer.end(), sorted_[n][i].key,
                         [](const Entry& entry, const Key& key) { return entry.key < key; });
    return static_cast<uint64_t>(place - longer.begin());
  }

  void put_unigrams() {
    for (size_t i = 0; i <= sorted_[0].size(); ++i) {
      const bool is_end = i == sorted_[0].size();
      put<float>(is_end ? 0.0F : sorted_[0][i].prob);
      put<float>(is_end ? 0.0F : sorted_[0][i].backoff);
      put<uint64_t>(next_of(0, i));
    }
    put<uint64_t>(0);  // room for one more
    put<uint64_t>(0);
  }

  void put_tables() {
    bytes_ += static_cast<char>(2);
    bytes_ += static_cast<char>(number_bits_);
    bytes_ += static_cast<char>(number_bits_);
    bytes_.append(5, '\0');
    const size_t size = size_t{1} << number_bits_;
    probs_.resize(sorted_.size());
    backoffs_.resize(sorted_.size());
    for (size_t n = 1; n < sorted_.size(); ++n) {
      std::set<float> probs, backoffs;
      for (const Entry& entry : sorted_[n]) {
        probs.insert(entry.prob);
        if (entry.backoff != 0) backoffs.insert(entry.backoff);
      }
      probs_[n].assign(probs.begin(), probs.end());
      backoffs_[n] = {-0.0F, 0.0F};
      backoffs_[n].insert(backoffs_[n].end(), backoffs.begin(), backoffs.end());
      probs_[n].resize(size);
      backoffs_[n].resize(size);
      for (const float prob : probs_[n]) put(prob);
      if (n + 1 == sorted_.size()) break;
      for (const float backoff : backoffs_[n]) put(backoff);
    }
  }

  static uint64_t place_in(const std::vector<float>& table, float value) {
    const auto equal = [&](float other) {
      return std::bit_cast<uint32_t>(other) == std::bit_cast<uint32_t>(value);
    };
    return static_cast<uint64_t>(std::find_if(table.begin(), table.end(), equal) - table.begin());
  }

  uint32_t bits_in_array(uint64_t entries, uint64_t next_count) const {
    const auto required = static_cast<uint32_t>(std::bit_width(next_count));
    int64_t lowest = std::numeric_limits<int64_t>::max();
    uint32_t best = 0;
    for (uint32_t bits = 0; bits <= std::min(required, array_bits_); ++bits) {
      const int64_t change = static_cast<int64_t>((next_count >> (required - bits)) * 64) -
                             static_cast<int64_t>(entries * bits);
      if (change < lowest) {
        lowest = change;
        best = bits;
      }
    }
    return best;
  }

  void put_order(size_t n) {
    const bool is_longest = n + 1 == sorted_.size();
    const size_t count = sorted_[n].size();
    const auto word_bits = static_cast<uint32_t>(std::bit_width(sorted_[0].size()));
    const uint32_t prob_bits = number_bits_ > 0 ? number_bits_ : 31;
    const uint32_t backoff_bits = is_longest ? 0 : number_bits_ > 0 ? number_bits_ : 32;
    uint32_t next_bits = 0;
    if (!is_longest) {
      const uint64_t next_count = sorted_[n + 1].size();
      next_bits = static_cast<uint32_t>(std::bit_width(next_count));
      if (array_bits_ > 0) {
        next_bits -= bits_in_array(count + 1, next_count);
        put_array(n, next_bits, (next_count >> next_bits) + 1);
      }
    }
    const uint64_t total = word_bits + prob_bits + backoff_bits + next_bits;
    std::string packed(((count + 1) * total + 7) / 8 + 8, '\0');
    for (size_t i = 0; i <= count; ++i) {
      uint64_t bit = i * total;
      if (i < count) {
        const Entry& entry = sorted_[n][i];
        or_bits(packed, bit, entry.key.back());
        put_numbers(packed, bit + word_bits, n, entry);
      }
      bit += word_bits + prob_bits + backoff_bits;
      if (!is_longest) or_bits(packed, bit, next_of(n, i) & ((uint64_t{1} << next_bits) - 1));
    }
    bytes_ += packed;
  }

  void put_numbers(std::string& packed, uint64_t bit, size_t n, const Entry& entry) const {
    const bool is_longest = n + 1 == sorted_.size();
    if (number_bits_ > 0) {
      if (!is_longest) or_bits(packed, bit, place_in(backoffs_[n], entry.backoff));
      or_bits(packed, bit + (is_longest ? 0 : number_bits_), place_in(probs_[n], entry.prob));
      return;
    }
    or_bits(packed, bit, std::bit_cast<uint32_t>(entry.prob) & 0x7FFFFFFFU);
    if (!is_longest) or_bits(packed, bit + 31, std::bit_cast<uint32_t>(entry.backoff));
  }

  void put_array(size_t n, uint32_t next_bits, uint64_t num_high) {
    const size_t begin = bytes_.size();
    std::string array(8 * (1 + num_high) + 7, '\0');
    array[1] = static_cast<char>(array_bits_);
    const size_t aligned = (begin + 7) / 8 * 8 + 8 - begin;
    uint64_t written = 0;
    for (uint64_t i = 0; i <= sorted_[n].size(); ++i) {
      for (; written <= next_of(n, i) >> next_bits; ++written)
        std::memcpy(array.data() + aligned + written * 8, &i, 8);
    }
    bytes_ += array;
  }

  const RandomNgrams& model_;
  const uint32_t number_bits_, array_bits_;
  std::vector<uint64_t> hashes_;
  std::vector<std::string> names_;  ///< from index 1 on
  std::vector<uint32_t> index_of_;  ///< by words of the model
  std::vector<std::vector<Entry>> sorted_;
  std::vector<std::vector<float>> probs_, backoffs_;
  std::string bytes_;
};

}  // namespace stretto::testing
