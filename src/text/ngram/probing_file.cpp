#include "text/ngram/probing_file.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "text/ngram/kenlm_file.h"
#include "text/ngram/ngram_model.h"

namespace stretto::text {
namespace {

constexpr float kMultiplier = 1.5F;      ///< buckets an entry
constexpr float kUnknownProb = -100.0F;  ///< of a model without `<unk>`, as KenLM has it
constexpr float kEnds = -0.0F;           ///< a back-off behind which no n-gram goes on

bool is_unknown(std::string_view word) {
  return word == "<unk>" || word == "<UNK>";
}

/// A table with its entries at the first free bucket from that of their key, as
/// ProbingTable::find() looks for them.
class TableBytes {
 public:
  TableBytes(uint64_t entries, size_t entry_bytes)
      : buckets_(kenlm_buckets(entries, kMultiplier)),
        entry_bytes_(entry_bytes),
        bytes_(buckets_ * entry_bytes, '\0') {}

  /// @param values  what stands behind the key
  void add(uint64_t key, const void* values) {
    uint64_t at = key % buckets_;
    while (load_value<uint64_t>(&bytes_[at * entry_bytes_]) != 0) {
      if (++at == buckets_) at = 0;
    }
    std::memcpy(&bytes_[at * entry_bytes_], &key, 8);
    std::memcpy(&bytes_[at * entry_bytes_ + 8], values, entry_bytes_ - 8);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  uint64_t buckets_;
  size_t entry_bytes_;
  std::string bytes_;
};

}  // namespace

void ProbingFile::Order::place(uint32_t entry) {
  const size_t mask = places_.size() - 1;
  size_t at = (entries_[entry].key * 0x9E3779B97F4A7C15ULL >> 20) & mask;
  while (places_[at] != 0) at = (at + 1) & mask;
  places_[at] = entry + 1;
}

ProbingFile::Entry* ProbingFile::Order::find(uint64_t key) {
  const size_t mask = places_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15ULL >> 20) & mask;
  for (; places_[at] != 0; at = (at + 1) & mask) {
    Entry& entry = entries_[places_[at] - 1];
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

bool ProbingFile::Order::add(const Entry& entry) {
  if (find(entry.key) != nullptr) return false;
  if (entries_.size() >= std::numeric_limits<uint32_t>::max() - 16)
    throw Error(ExitCode::kBadData, "an n-gram model has more than 4 billion n-grams of an order",
                "prune it, or make a binary file with KenLM's build_binary");
  entries_.push_back(entry);
  if (entries_.size() * 2 > places_.size()) {
    places_.assign(places_.size() * 2, 0);
    for (size_t i = 0; i + 1 < entries_.size(); ++i) place(static_cast<uint32_t>(i));
  }
  place(static_cast<uint32_t>(entries_.size() - 1));
  return true;
}

void ProbingFile::fail(const ArpaNgram& ngram, const std::string& what) const {
  std::string text;
  for (const std::string_view word : ngram.words)
    text += (text.empty() ? "" : " ") + printable(word, 60);
  throw Error(ExitCode::kBadData,
              place_ + ":" + std::to_string(ngram.line) + ": the n-gram `" + text + "` " + what,
              "make the language model again: its file was edited, cut or joined");
}

uint32_t ProbingFile::word_index(std::string_view word) const {
  if (is_unknown(word)) return 0;
  const Entry* entry = vocabulary_.find(kenlm_word_hash(word));
  return entry == nullptr ? 0 : static_cast<uint32_t>(entry - vocabulary_.entries().data()) + 1;
}

ProbingFile::ProbingFile(ArpaLines& lines, const std::string& place) : place_(place) {
  words_ = std::string("<unk>") + '\0';
  unigrams_.push_back({0, kUnknownProb, kEnds});
  read_arpa(
      lines, place_,
      [this](const std::vector<uint64_t>& counts) {
        num_unigrams_ = counts[0];
        orders_.resize(counts.size() < 2 ? 1 : counts.size() - 1);
      },
      [this](const ArpaNgram& ngram) {
        if (ngram.words.size() == 1) {
          add_unigram(ngram);
        } else {
          add_ngram(ngram);
        }
      });
}

void ProbingFile::add_unigram(const ArpaNgram& ngram) {
  const std::string_view word = ngram.words[0];
  Entry entry;
  entry.prob = -std::fabs(ngram.log_prob);
  entry.backoff = ngram.backoff == 0 ? kEnds : ngram.backoff;
  if (is_unknown(word)) {
    if (has_unknown_) fail(ngram, "stands there twice");
    has_unknown_ = true;
    unigrams_[0] = entry;
    return;
  }
  Entry hashed;
  hashed.key = kenlm_word_hash(word);
  if (!vocabulary_.add(hashed)) fail(ngram, "stands there twice");
  unigrams_.push_back(entry);
  words_.append(word);
  words_.push_back('\0');
}

ProbingFile::Entry& ProbingFile::entry_of(uint64_t key, size_t length) {
  if (length == 1) return unigrams_[key];
  return *orders_[length - 2].find(key);
}

float ProbingFile::backoff_of(uint64_t key, size_t length) {
  if (length == 1) return unigrams_[key].backoff;
  const Entry* entry = orders_[length - 2].find(key);
  return entry == nullptr ? 0.0F : entry->backoff;
}

void ProbingFile::add_endings(const std::vector<uint64_t>& keys,
                              const std::vector<uint64_t>& contexts, size_t length) {
  for (size_t m = 2; m < length; ++m) {
    if (orders_[m - 2].find(keys[m]) != nullptr) continue;
    Entry& shorter = entry_of(keys[m - 1], m - 1);
    Entry entry;
    entry.key = keys[m];
    entry.prob = -std::fabs(-std::fabs(shorter.prob) + backoff_of(contexts[m - 1], m - 1));
    entry.backoff = kEnds;
    shorter.prob = std::fabs(shorter.prob);
    orders_[m - 2].add(entry);
  }
  Entry& ending = entry_of(keys[length - 1], length - 1);
  ending.prob = std::fabs(ending.prob);
}

void ProbingFile::add_ngram(const ArpaNgram& ngram) {
  const size_t length = ngram.words.size();
  std::vector<uint32_t> words(length);  // the last word first
  for (size_t i = 0; i < length; ++i) {
    const std::string_view word = ngram.words[length - 1 - i];
    words[i] = word_index(word);
    if (words[i] == 0 && !is_unknown(word))
      fail(ngram, "has the word `" + printable(word, 60) + "`, which is no unigram");
  }
  // keys[m] has the last m words, contexts[m] the m words before the last one.
  std::vector<uint64_t> keys(length + 1), contexts(length);
  keys[1] = words[0];
  contexts[1] = words[1];
  for (size_t m = 2; m <= length; ++m) keys[m] = kenlm_extended(keys[m - 1], words[m - 1]);
  for (size_t m = 2; m < length; ++m) contexts[m] = kenlm_extended(contexts[m - 1], words[m]);
  if (length > 2 && orders_[length - 3].find(contexts[length - 1]) == nullptr)
    fail(ngram, "begins with " + std::to_string(length - 1) +
                    " words that are no n-gram: its back-off leads nowhere");
  Entry& context = entry_of(contexts[length - 1], length - 1);
  if (context.backoff == 0) context.backoff = 0.0F;  // not -0: it goes on
  add_endings(keys, contexts, length);
  Entry entry;
  entry.key = keys[length];
  entry.prob = -std::fabs(ngram.log_prob);
  entry.backoff = ngram.backoff == 0 ? kEnds : ngram.backoff;
  if (!orders_[length - 2].add(entry)) fail(ngram, "stands there twice");
}

void ProbingFile::write(const std::function<void(std::string_view)>& put) const {
  KenlmHead head;
  head.probing_multiplier = kMultiplier;
  head.counts.push_back(num_unigrams_);
  for (const Order& order : orders_) head.counts.push_back(order.entries().size());
  put(kenlm_head_bytes(head));
  const uint32_t counted_words[2] = {0, static_cast<uint32_t>(unigrams_.size())};
  put(std::string_view(reinterpret_cast<const char*>(counted_words), 8));
  {
    TableBytes table(num_unigrams_, 12);
    const std::vector<Entry>& words = vocabulary_.entries();
    for (size_t i = 0; i < words.size(); ++i) {
      const auto index = static_cast<uint32_t>(i) + 1;
      table.add(words[i].key, &index);
    }
    put(table.bytes());
  }
  std::string unigrams((num_unigrams_ + 1) * 8, '\0');
  for (size_t i = 0; i < unigrams_.size(); ++i) {
    std::memcpy(&unigrams[i * 8], &unigrams_[i].prob, 4);
    std::memcpy(&unigrams[i * 8 + 4], &unigrams_[i].backoff, 4);
  }
  put(unigrams);
  for (size_t i = 0; i < orders_.size(); ++i) {
    const bool is_longest = i + 1 == orders_.size();
    TableBytes table(orders_[i].entries().size(), is_longest ? 12 : 16);
    for (const Entry& entry : orders_[i].entries()) {
      const float numbers[2] = {entry.prob, entry.backoff};
      table.add(entry.key, numbers);
    }
    put(table.bytes());
  }
  put(words_);
}

std::string ProbingFile::bytes() const {
  std::string all;
  write([&](std::string_view part) { all.append(part); });
  return all;
}

}  // namespace stretto::text
