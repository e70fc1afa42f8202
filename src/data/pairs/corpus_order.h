#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/length_batches.h"
#include "data/sample_store.h"

namespace stretto::data {

/// How often an epoch sees each pair. A weight w gives every pair of an input floor(w) samples, and
/// one more with probability w - floor(w), by a hash of (seed, pair): the same in every epoch.
struct SampleWeights {
  std::vector<double> weights;  ///< one for each input; empty = 1 each
  uint64_t seed = 0;
  uint64_t key() const;  ///< 0 when every pair is one sample; the seed counts only where it matters
};

/// The lengths of all pairs of a corpus, and where its inputs end.
struct PairLengths {
  std::span<const uint64_t> ends;        ///< [pairs]: the id behind each pair
  std::span<const uint32_t> src_lens;    ///< [pairs]
  std::span<const uint64_t> input_ends;  ///< pairs up to and with each input, in order

  uint32_t src(uint64_t pair) const { return src_lens[pair]; }
  uint32_t tgt(uint64_t pair) const {
    return static_cast<uint32_t>(ends[pair] - (pair == 0 ? 0 : ends[pair - 1])) - src(pair);
  }
};

/// The parts of a store with an order.
enum OrderPart : size_t {
  kOrderSamples,  ///< uint32 [samples]: sorted by (target length, source length), then by number
  kOrderPairs,    ///< uint32 [samples]: the pair of each; nothing where each pair is one sample
  kRunLengths,    ///< uint32 [2 * runs]: lengths of source and target
  kRunEnds,       ///< uint64 [runs]
  kNumOrderParts,
};

/// The samples of a corpus by their lengths; samples are numbered in the order of their pairs.
class CorpusOrder {
 public:
  /// The key of its store. @param corpus_key  that of the store with the pairs
  static uint64_t key_of(uint64_t corpus_key, const SampleWeights& weights);
  /// Whether the parts of a store are an order of so many pairs.
  static bool is_sound(const SampleStore& store, uint64_t num_pairs);
  explicit CorpusOrder(SampleStore store);  ///< one that is sound

  uint64_t num_samples() const { return samples_.size(); }
  uint64_t src_tokens() const { return src_tokens_; }
  uint64_t tgt_tokens() const { return tgt_tokens_; }
  uint64_t num_bytes() const { return store_.num_bytes(); }
  /// With the lengths of source and target, as the columns of a batch stand.
  const LengthRuns& runs() const { return runs_; }
  uint64_t sample_at(uint64_t position) const { return samples_[position]; }
  uint64_t pair_of(uint64_t sample) const { return pairs_.empty() ? sample : pairs_[sample]; }

 private:
  SampleStore store_;
  std::span<const uint32_t> samples_, pairs_;
  uint64_t src_tokens_ = 0, tgt_tokens_ = 0;
  LengthRuns runs_{.num_columns = 2};
};

/// Fills the parts of a store with an order. Sorts by counting, a window of the order at a time:
/// each takes a pass over the lengths.
///
/// @param window  samples that are held in memory; an order of more than 16 windows has larger ones
/// @return the words of the head
/// Throws Error(kBadData) for weights that leave no sample, or make more than 4,294,967,295.
std::vector<uint64_t> build_order(const PairLengths& lengths, const SampleWeights& weights,
                                  SampleStoreWriter& store, uint64_t window = uint64_t{1} << 24);

}  // namespace stretto::data
