#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch_source.h"
#include "data/documents/document_sequences.h"
#include "data/documents/masked_text_options.h"
#include "data/documents/masking.h"
#include "data/text_columns.h"

/// Sequences of documents with hidden tokens, as micro-batches.
namespace stretto::data {

/// The columns of a batch behind kTokens, which has the ids after masking, and kSegments.
enum MaskedColumn : size_t {
  kMaskedRows = kFirstOwnColumn,        ///< places of the chosen tokens in their sequence
  kMaskedLabels = kFirstOwnColumn + 1,  ///< the ids that stood there
};

inline const PackedTokens& masked_rows(const Batch& texts) {
  return texts.column<int64_t>(kMaskedRows);
}
inline const PackedTokens& masked_labels(const Batch& texts) {
  return texts.column<int64_t>(kMaskedLabels);
}
/// A batch that sequences can be appended to.
inline Batch masked_batch() {
  return text_batch(2);
}

DocumentInput input_of(const MaskedTextOptions& options, const std::vector<std::string>& paths,
                       const std::string& key, int64_t threads);
Packing packing_of(const MaskedTextOptions& options);
MaskRules mask_rules_of(const MaskedTextOptions& options);

/// Sequences and how their tokens are hidden.
struct MaskedText {
  std::shared_ptr<const DocumentSequences> sequences;
  std::shared_ptr<const Masker> masker;
};

/// Shuffled training batches. The order is a function of (seed, epoch, index), masks are one of
/// (seed, epoch, sample). Throws Error(kUsage) for a sequence longer than `data.max_tokens`.
std::unique_ptr<BatchSource> make_masked_train_batches(MaskedText text,
                                                       const MaskedTextOptions& options,
                                                       uint64_t seed);

/// Batches in order of length, each sequence once, for validation. Masks are a function of (seed,
/// sample). @param max_samples  of a batch; 0 = any number
std::unique_ptr<BatchSource> make_masked_eval_batches(MaskedText text, int64_t max_tokens,
                                                      int64_t max_samples, uint64_t seed);

/// One masked sequence as make_masked_eval_batches() has it.
Batch masked_eval_sample(const MaskedText& text, int64_t sample, uint64_t seed);

}  // namespace stretto::data
