#pragma once

#include "data/batch.h"

/// The first columns of a batch of encoded texts, with or without labels. Each sample is one packed
/// sequence with its special tokens, as the template of its tokenizer says. A family of tasks adds
/// columns of its own behind them.
namespace stretto::data {

enum TextColumn : size_t {
  kTokens = 0,          ///< ids
  kSegments = 1,        ///< of each token the text that it belongs to, 0 or 1; as long as kTokens
  kFirstOwnColumn = 2,  ///< of a family
};

inline const PackedTokens& tokens(const Batch& texts) {
  return texts.column<int64_t>(kTokens);
}
inline PackedTokens& tokens(Batch& texts) {
  return texts.column<int64_t>(kTokens);
}
inline const PackedTokens& segments(const Batch& texts) {
  return texts.column<int64_t>(kSegments);
}
inline PackedTokens& segments(Batch& texts) {
  return texts.column<int64_t>(kSegments);
}

/// A batch that texts can be appended to. @param own_columns  packed integers of a family; it adds
/// columns of another kind behind them itself
inline Batch text_batch(size_t own_columns = 0) {
  Batch batch;
  for (size_t i = 0; i < kFirstOwnColumn + own_columns; ++i)
    batch.columns.emplace_back(PackedTokens{});
  return batch;
}

}  // namespace stretto::data
