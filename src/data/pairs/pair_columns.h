#pragma once

#include <utility>
#include <vector>

#include "data/batch.h"

/// The columns of parallel text. Both hold real tokens with end-of-sentence at the end of each
/// sequence and no beginning-of-sentence; a model shifts the target right by itself for its
/// decoder's input.
namespace stretto::data {

enum PairColumn : size_t { kSource = 0, kTarget = 1 };

inline const PackedTokens& source(const Batch& pairs) {
  return pairs.column<int64_t>(kSource);
}
inline PackedTokens& source(Batch& pairs) {
  return pairs.column<int64_t>(kSource);
}
inline const PackedTokens& target(const Batch& pairs) {
  return pairs.column<int64_t>(kTarget);
}
inline PackedTokens& target(Batch& pairs) {
  return pairs.column<int64_t>(kTarget);
}

/// A batch of parallel text; without arguments one that pairs can be appended to.
inline Batch pair_batch(std::vector<int64_t> sample_ids = {}, PackedTokens source = {},
                        PackedTokens target = {}) {
  return {.sample_ids = std::move(sample_ids), .columns = {std::move(source), std::move(target)}};
}

}  // namespace stretto::data
