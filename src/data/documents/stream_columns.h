#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"
#include "data/documents/documents.h"

/// Documents as one stream of tokens, of which a model predicts each from those before it. Nothing
/// stands around a stretch of it but what the stream has: a separator behind each document.
namespace stretto::data {

/// The columns of a batch; both have the same rows.
enum StreamColumn : size_t {
  kStreamInputs = 0,  ///< the token before each one; before the first of all a separator
  kStreamNext = 1,    ///< the tokens of the stretch, which are predicted
};

inline const PackedTokens& stream_inputs(const Batch& batch) {
  return batch.column<int64_t>(kStreamInputs);
}
inline const PackedTokens& stream_next(const Batch& batch) {
  return batch.column<int64_t>(kStreamNext);
}
/// A batch that stretches can be appended to.
inline Batch stream_batch() {
  return {.sample_ids = {}, .columns = {PackedTokens{}, PackedTokens{}}};
}

/// Tokens [begin, end) of all documents, with separators. An end behind theirs goes on at their
/// begin, where the last separator stands in front of the first token.
struct StreamRange {
  uint64_t begin = 0, end = 0;
  bool operator==(const StreamRange&) const = default;
};

/// Appends a stretch as one more sample. It has at least one token, and none twice.
void append_stretch(const Documents& documents, StreamRange range, int64_t sample_id, Batch& batch);

}  // namespace stretto::data
