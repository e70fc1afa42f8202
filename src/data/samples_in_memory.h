#pragma once

#include "data/length_batches.h"

namespace stretto::data {

/// Samples that lie in memory as one batch, in the order of the lengths of their first column.
class SamplesInMemory : public LengthSamples {
 public:
  /// @param samples  whose ids are their places: 0, 1, …
  explicit SamplesInMemory(Batch samples);

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override { return order_.samples[position]; }
  Batch empty_batch() const override;
  void append(int64_t epoch, int64_t sample, Batch& batch) const override;

  const Batch& samples() const { return samples_; }

 private:
  Batch samples_;
  LengthOrder order_;
};

}  // namespace stretto::data
