#pragma once

#include <cstdint>
#include <vector>

namespace stretto::data {

/// One side of a batch: the sequences one after the other without padding, with their boundaries.
struct PackedTokens {
  std::vector<int64_t> ids;  ///< [tokens]
  std::vector<int32_t> offsets{
      0};  ///< [sequences + 1]; sequence i is ids[offsets[i], offsets[i+1])

  int64_t num_tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t num_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  int64_t max_length() const;
};

/// One micro-batch of sentence pairs.
///
/// `src` and `tgt` hold real tokens with end-of-sentence at the end of each sequence and no
/// beginning-of-sentence; the model shifts `tgt` right by itself for the decoder's input.
struct Batch {
  std::vector<int64_t> sample_ids;  ///< [sequences]; identity of each pair in the corpus
  PackedTokens src;
  PackedTokens tgt;

  int64_t num_sequences() const { return static_cast<int64_t>(sample_ids.size()); }
};

/// Micro-batches one after the other as one batch; what accumulation must be equal to.
Batch concatenate(const std::vector<Batch>& parts);

/// Sequences [begin, end) of a batch.
Batch part(const Batch& batch, int64_t begin, int64_t end);

/// One of `parts` stretches of neighbouring sequences that together are the batch, with about
/// equally many tokens of both sides. Empty only where there are fewer sequences than parts.
Batch even_part(const Batch& batch, int64_t number, int64_t parts);

}  // namespace stretto::data
