#include "text/ngram/ngram_model.h"

#include <algorithm>

namespace stretto::text {

bool NgramState::operator==(const NgramState& other) const {
  return length == other.length &&
         std::equal(words.begin(), words.begin() + length, other.words.begin());
}

NgramState NgramModel::begin_history() const {
  NgramState begin;
  if (begin_index_ != 0) score(NgramState{}, begin_index_, begin);
  return begin;
}

float NgramModel::unigram(uint32_t word) const {
  NgramState ignored;
  return score(NgramState{}, word, ignored);
}

}  // namespace stretto::text
