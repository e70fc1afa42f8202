#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decoding/shortlist.h"

namespace stretto::decoding {

/// How a lexicon is found, and what of it is kept.
struct LexiconOptions {
  int64_t iterations = 5;       ///< of expectation maximisation
  int64_t most_of_token = 100;  ///< likeliest target tokens of a source token
  double least = 1e-3;          ///< probability of a pair
};

/// Which tokens translate each other, by pairs of sentences: t(target | source) of IBM Model 1
/// (Brown et al. 1993, Computational Linguistics 19:2, section 4.1), from equal probabilities on,
/// with an empty word beside the tokens of each source. Memory grows with the pairs of tokens that
/// stand in one pair of sentences, 24 bytes each; a hundred thousand sentences say enough for a
/// shortlist.
class Lexicon {
 public:
  /// A pair of sentences, without specials.
  void add(std::span<const int64_t> src, std::span<const int64_t> tgt);

  /// By ascending source token, the likeliest first, equal ones by the number of the target token.
  /// It depends on the sentences and their order alone.
  std::vector<Shortlist::Pair> pairs(const LexiconOptions& options = {}) const;

 private:
  /// Calls `look` with the tokens of each source, the empty word among them, and of its target.
  template <class Look>
  void for_each_sentence(const Look& look) const;

  std::vector<int64_t> src_, tgt_;            ///< of all sentences, one behind the other
  std::vector<int64_t> src_ends_, tgt_ends_;  ///< of each sentence in them
  int64_t num_src_ = 0;                       ///< one above the largest source token
};

}  // namespace stretto::decoding
