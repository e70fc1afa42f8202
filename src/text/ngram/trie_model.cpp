#include "text/ngram/trie_model.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/error.h"

namespace stretto::text {
namespace {

constexpr size_t kUnigramBytes = 16;
constexpr uint32_t kVersion = 1;
constexpr uint32_t kQuantVersion = 2;

/// Bits that hold numbers up to this one.
uint32_t required_bits(uint64_t most) {
  return static_cast<uint32_t>(std::bit_width(most));
}

/// Up to 57 bits from a place in bits. The file has 8 bytes behind the last entry.
uint64_t read_bits(const char* first, uint64_t bit, uint32_t count) {
  const uint64_t mask = (uint64_t{1} << count) - 1;
  return (load_value<uint64_t>(first + bit / 8) >> (bit % 8)) & mask;
}

/// How many high bits of a place go into the array: what makes the file smallest.
/// @param entries  with the one behind the last
uint32_t array_bits(uint64_t entries, uint64_t next_count, uint32_t most_bits) {
  const uint32_t required = required_bits(next_count);
  int64_t lowest = std::numeric_limits<int64_t>::max();
  uint32_t best = 0;
  for (uint32_t bits = 0; bits <= std::min(required, most_bits); ++bits) {
    const uint32_t left = required - bits;
    const uint64_t array = left >= 64 ? 0 : next_count >> left;
    const int64_t change =
        static_cast<int64_t>(array * 64) - static_cast<int64_t>(entries) * int64_t{bits};
    if (change < lowest) {
      lowest = change;
      best = bits;
    }
  }
  return best;
}

/// The entry of a word in a range, whose words are in order.
/// @return false = there is none
bool find_entry(const PackedEntries& entries, const EntryRange& range, uint32_t word,
                uint64_t& at) {
  uint64_t begin = range.begin, end = range.end;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    const uint64_t found =
        read_bits(entries.first, middle * entries.total_bits(), entries.word_bits);
    if (found == word) {
      at = middle;
      return true;
    }
    if (found < word) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return false;
}

/// The place in the array of high bits that entry `at` belongs to: the last one that begins there
/// or before.
uint64_t high_place(const PackedEntries& entries, uint64_t at) {
  uint64_t begin = 0, end = entries.num_high;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    if (load_value<uint64_t>(entries.high + middle * 8) > at) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin == 0 ? 0 : begin - 1;
}

uint64_t next_place(const PackedEntries& entries, uint64_t at) {
  const uint64_t bit = at * entries.total_bits() + entries.word_bits + entries.number_bits;
  const uint64_t low = read_bits(entries.first, bit, entries.next_bits);
  const uint64_t high = entries.high == nullptr ? 0 : high_place(entries, at);
  // A damaged array is the only way to more bits than a place has.
  return std::min((high << entries.next_bits) | low, entries.next_count);
}

/// Entries behind entry `at`, which are in the next order.
EntryRange next_range(const PackedEntries& entries, uint64_t at) {
  EntryRange range;
  range.begin = next_place(entries, at);
  range.end = std::max(range.begin, next_place(entries, at + 1));
  return range;
}

}  // namespace

/// Takes the parts of a file one by one.
class TrieModel::Layout {
 public:
  Layout(std::string_view bytes, size_t begin, const std::string& place)
      : bytes_(bytes), end_(begin), place_(place) {}

  const char* take(uint64_t size) {
    const char* begin = bytes_.data() + end_;
    if (size > bytes_.size() - end_) {
      throw_bad_kenlm(place_, "it has " + std::to_string(bytes_.size()) +
                                  " bytes, and its head says " + std::to_string(end_ + size) +
                                  " at least");
    }
    end_ += size;
    return begin;
  }
  uint64_t end() const { return end_; }

 private:
  std::string_view bytes_;
  uint64_t end_;
  const std::string& place_;
};

bool TrieModel::is_quantised() const {
  return head_.kind == KenlmKind::kQuantTrie || head_.kind == KenlmKind::kQuantArrayTrie;
}

bool TrieModel::has_arrays() const {
  return head_.kind == KenlmKind::kArrayTrie || head_.kind == KenlmKind::kQuantArrayTrie;
}

void TrieModel::place_tables(Layout& layout) {
  prob_bits_ = 31;
  backoff_bits_ = 32;
  if (!is_quantised()) return;
  const char* bits = layout.take(8);
  prob_bits_ = load_value<uint8_t>(bits + 1);
  backoff_bits_ = load_value<uint8_t>(bits + 2);
  if (load_value<uint8_t>(bits) != kQuantVersion || prob_bits_ == 0 || prob_bits_ > 25 ||
      backoff_bits_ == 0 || backoff_bits_ > 25) {
    throw_bad_kenlm(place_, "its tables of quantised numbers have no right head");
  }
  for (int order = 2; order <= head_.order(); ++order) {
    prob_tables_.push_back(layout.take(uint64_t{4} << prob_bits_));
    if (order < head_.order()) backoff_tables_.push_back(layout.take(uint64_t{4} << backoff_bits_));
  }
}

void TrieModel::place_orders(Layout& layout) {
  const uint32_t word_bits = required_bits(head_.counts[0]);
  uint32_t most_array_bits = 0;
  for (int order = 2; order <= head_.order(); ++order) {
    const bool is_longest = order == head_.order();
    const size_t i = static_cast<size_t>(order) - 1;
    PackedEntries entries;
    entries.count = head_.counts[i];
    entries.word_bits = word_bits;
    entries.number_bits = is_longest ? prob_bits_ : prob_bits_ + backoff_bits_;
    if (!is_longest) {
      entries.next_count = head_.counts[i + 1];
      entries.next_bits = required_bits(entries.next_count);
    }
    if (!is_longest && has_arrays()) {
      // The bytes of the head come first, before the array is aligned, and the first order has
      // them filled in alone.
      const uint64_t begin = layout.end();
      if (order == 2) most_array_bits = load_value<uint8_t>(layout.take(2) + 1);
      const uint32_t in_array = array_bits(entries.count + 1, entries.next_count, most_array_bits);
      entries.next_bits -= in_array;
      entries.num_high = (entries.next_count >> entries.next_bits) + 1;
      const uint64_t array_begin = (begin + 7) / 8 * 8 + 8;
      const uint64_t array_end = begin + 8 * (1 + entries.num_high) + 7;
      layout.take(array_end - layout.end());
      entries.high = bytes_.view().data() + array_begin;
    }
    entries.first = layout.take(((1 + entries.count) * entries.total_bits() + 7) / 8 + 8);
    orders_.push_back(entries);
  }
}

TrieModel::TrieModel(ModelBytes model_bytes, const std::string& place)
    : bytes_(std::move(model_bytes)), place_(place) {
  const std::string_view bytes = bytes_.view();
  head_ = read_kenlm_head(bytes, place_);
  if (head_.version != kVersion) throw_bad_kenlm(place_, "its trie is of another version than 1");
  Layout layout(bytes, head_.bytes(), place_);
  const char* vocabulary = layout.take(8 + 8 * head_.counts[0]);
  const auto hashes = load_value<uint64_t>(vocabulary);
  if (hashes > head_.counts[0]) throw_bad_kenlm(place_, "its vocabulary has no right head");
  num_words_ = static_cast<uint32_t>(hashes) + 1;
  hashes_ = vocabulary + 8;
  place_tables(layout);
  unigrams_ = layout.take((head_.counts[0] + 2) * kUnigramBytes);
  place_orders(layout);
  if (head_.has_strings) words_ = KenlmWords(bytes.substr(layout.end()), num_words_, place_);
  begin_index_ = index("<s>");
  end_index_ = index("</s>");
}

uint32_t TrieModel::index(std::string_view word) const {
  const uint64_t hash = kenlm_word_hash(word);
  uint32_t begin = 0, end = num_words_ - 1;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const auto found = load_value<uint64_t>(hashes_ + size_t{middle} * 8);
    if (found == hash) return middle + 1;
    if (found < hash) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return 0;
}

float TrieModel::prob(size_t order_minus_2, uint64_t at) const {
  const PackedEntries& entries = orders_[order_minus_2];
  uint64_t bit = at * entries.total_bits() + entries.word_bits;
  if (is_quantised()) {
    if (order_minus_2 + 1 < orders_.size()) bit += backoff_bits_;
    const uint64_t place = read_bits(entries.first, bit, prob_bits_);
    return load_value<float>(prob_tables_[order_minus_2] + place * 4);
  }
  // 31 bits: the sign is that of a negative number, always.
  return std::bit_cast<float>(static_cast<uint32_t>(read_bits(entries.first, bit, 31)) |
                              0x80000000U);
}

float TrieModel::backoff(size_t order_minus_2, uint64_t at) const {
  const PackedEntries& entries = orders_[order_minus_2];
  const uint64_t bit = at * entries.total_bits() + entries.word_bits;
  if (is_quantised()) {
    const uint64_t place = read_bits(entries.first, bit, backoff_bits_);
    return load_value<float>(backoff_tables_[order_minus_2] + place * 4);
  }
  return std::bit_cast<float>(static_cast<uint32_t>(read_bits(entries.first, bit + 31, 32)));
}

float TrieModel::score(const NgramState& history, uint32_t word, NgramState& next) const {
  if (word >= num_words_) word = 0;
  const char* unigram = unigrams_ + size_t{word} * kUnigramBytes;
  float score = load_value<float>(unigram);
  next.words[0] = word;
  next.backoffs[0] = load_value<float>(unigram + 4);
  next.length = goes_on(next.backoffs[0]) ? 1 : 0;
  EntryRange range;
  range.begin = std::min(load_value<uint64_t>(unigram + 8), orders_[0].count);
  range.end = std::min(load_value<uint64_t>(unigram + kUnigramBytes + 8), orders_[0].count);
  uint32_t matched = 1;
  for (uint32_t i = 0; i < history.length; ++i) {
    uint64_t at = 0;
    if (!find_entry(orders_[i], range, history.words[i], at)) break;
    score = prob(i, at);
    ++matched;
    if (i + 1 == orders_.size()) break;
    next.words[i + 1] = history.words[i];
    next.backoffs[i + 1] = backoff(i, at);
    if (goes_on(next.backoffs[i + 1])) next.length = matched;
    range = next_range(orders_[i], at);
  }
  for (uint32_t i = matched - 1; i < history.length; ++i) score += history.backoffs[i];
  return score;
}

}  // namespace stretto::text
