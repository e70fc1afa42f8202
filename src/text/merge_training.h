#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/wordpiece.h"

namespace stretto::text {

/// How often each word stands in a text; words in their order, so that training is deterministic.
using WordCounts = std::map<std::string, int64_t>;

struct MergeTraining {
  int64_t vocab_size =
      30000;  ///< specials and characters included; fewer where the text has no more pairs
  int64_t min_frequency = 2;                  ///< a rarer pair is not joined
  int64_t limit_alphabet = 0;                 ///< rarer characters have no piece; 0 = all have one
  size_t max_piece_bytes = size_t{64} << 10;  ///< a longer one is not made: no reader takes it
  std::string continuing_prefix;              ///< of pieces that do not begin a word, such as `##`
  std::vector<std::string> specials;          ///< get the first ids
  std::vector<std::string> initial_alphabet;  ///< characters that have a piece in any case
};

struct TrainedMerges {
  PieceIds vocab;                                           ///< by ascending id
  std::vector<std::pair<std::string, std::string>> merges;  ///< earliest first
};

/// Byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909, algorithm 1): the most frequent pair
/// of neighbours is joined first; of equals the one with lower ids. Ids are those of Hugging Face's
/// `tokenizers`: specials, characters by code point, continuing characters, joined pieces. For
/// `tokenizers`, the order of continuing characters is chance; here they are sorted.
TrainedMerges train_merges(const WordCounts& words, const MergeTraining& options);

}  // namespace stretto::text
