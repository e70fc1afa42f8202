#pragma once

#include <cstdint>

#include "base/random.h"
#include "data/batch_source.h"
#include "data/pairs/pair_columns.h"

namespace stretto::test {

/// How many pairs there are, and how long they are.
struct DrawnPairs {
  int64_t batches = 1;
  int64_t pairs = 1;  ///< in each batch
  int64_t vocabulary = 5;
  int64_t shortest = 1;  ///< ids of a sequence before its end
  int64_t lengths = 1;   ///< that there are, from the shortest on
};

/// Batches of pairs whose lengths and ids are a function of the sample: each holds the samples
/// behind those of the batch before. Every sequence ends with end-of-sentence.
class PairSource : public data::BatchSource {
 public:
  explicit PairSource(const DrawnPairs& drawn) : drawn_(drawn) {}

  int64_t num_batches() const override { return drawn_.batches; }
  data::Batch load(int64_t, int64_t index) const override {
    data::Batch batch = data::pair_batch();
    for (int64_t i = 0; i < drawn_.pairs; ++i) {
      const int64_t sample = index * drawn_.pairs + i;
      batch.sample_ids.push_back(sample);
      append(data::source(batch), static_cast<uint64_t>(2 * sample));
      append(data::target(batch), static_cast<uint64_t>(2 * sample + 1));
    }
    return batch;
  }

 private:
  static constexpr uint64_t kSpecials = 4;  // ids below it stand for no word

  void append(data::PackedTokens& side, uint64_t seed) const {
    const auto words = static_cast<uint64_t>(drawn_.vocabulary) - kSpecials;
    const auto longer =
        static_cast<int64_t>(mix64(7, seed) % static_cast<uint64_t>(drawn_.lengths));
    for (int64_t i = 0; i < drawn_.shortest + longer; ++i) {
      side.values.push_back(
          static_cast<int64_t>(kSpecials + mix64(seed, static_cast<uint64_t>(i)) % words));
    }
    side.values.push_back(3);
    side.close_sequence();
  }

  DrawnPairs drawn_;
};

}  // namespace stretto::test
