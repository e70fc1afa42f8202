#include "text/ngram/probing_model.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace stretto::text {

ProbingModel::ProbingModel(ModelBytes model_bytes, const std::string& place)
    : bytes_(std::move(model_bytes)) {
  const std::string_view bytes = bytes_.view();
  head_ = read_kenlm_head(bytes, place);
  if (head_.version != 0) throw_bad_kenlm(place, "its hash tables are of another version than 0");
  uint64_t end = head_.bytes();
  const auto take = [&](uint64_t size) {
    const uint64_t begin = end;
    end += size;
    if (end > bytes.size()) {
      throw_bad_kenlm(place, "it has " + std::to_string(bytes.size()) +
                                 " bytes, and its head says " + std::to_string(end) + " at least");
    }
    return bytes.data() + begin;
  };
  const auto buckets = [&](uint64_t entries) {
    return kenlm_buckets(entries, head_.probing_multiplier);
  };
  const char* words = take(8);
  vocabulary_.buckets = buckets(head_.counts[0]);
  vocabulary_.first = take(vocabulary_.buckets * 12);
  unigrams_ = take((head_.counts[0] + 1) * 8);
  for (size_t i = 1; i + 1 < head_.counts.size(); ++i) {
    ProbingTable<16> table;
    table.buckets = buckets(head_.counts[i]);
    table.first = take(table.buckets * 16);
    middle_.push_back(table);
  }
  longest_.buckets = buckets(head_.counts.back());
  longest_.first = take(longest_.buckets * 12);
  num_words_ = load_value<uint32_t>(words + 4);
  if (load_value<uint32_t>(words) != 0 || num_words_ == 0 || num_words_ > head_.counts[0] + 1)
    throw_bad_kenlm(place, "its vocabulary has no right head");
  if (head_.has_strings) words_ = KenlmWords(bytes.substr(end), num_words_, place);
  begin_index_ = index("<s>");
  end_index_ = index("</s>");
}

uint32_t ProbingModel::index(std::string_view word) const {
  const char* entry = vocabulary_.find(kenlm_word_hash(word));
  if (entry == nullptr) return 0;
  const auto found = load_value<uint32_t>(entry + 8);
  return found < num_words_ ? found : 0;
}

float ProbingModel::score(const NgramState& history, uint32_t word, NgramState& next) const {
  if (word >= num_words_) word = 0;
  float prob = load_value<float>(unigrams_ + size_t{word} * 8);
  next.words[0] = word;
  next.backoffs[0] = load_value<float>(unigrams_ + size_t{word} * 8 + 4);
  next.length = goes_on(next.backoffs[0]) ? 1 : 0;
  uint64_t key = word;
  uint32_t matched = 1;
  for (uint32_t i = 0; i < history.length && !std::signbit(prob); ++i) {
    key = kenlm_extended(key, history.words[i]);
    if (i == middle_.size()) {
      if (const char* entry = longest_.find(key); entry != nullptr) {
        prob = load_value<float>(entry + 8);
        ++matched;
      }
      break;
    }
    const char* entry = middle_[i].find(key);
    if (entry == nullptr) break;
    prob = load_value<float>(entry + 8);
    ++matched;
    next.words[i + 1] = history.words[i];
    next.backoffs[i + 1] = load_value<float>(entry + 12);
    if (goes_on(next.backoffs[i + 1])) next.length = matched;
  }
  prob = -std::fabs(prob);
  for (uint32_t i = matched - 1; i < history.length; ++i) prob += history.backoffs[i];
  return prob;
}

}  // namespace stretto::text
