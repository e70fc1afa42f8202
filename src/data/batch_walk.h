#pragma once

#include <cstdint>

#include "data/batch_source.h"
#include "data/rank_batches.h"

namespace stretto::data {

/// The micro-batches of a BatchSource in the order of training, from a position on and without end;
/// of several processes each walks its share. The source must outlive it.
class BatchWalk {
 public:
  /// @param start  with a share: the beginning of an update
  /// Throws std::invalid_argument where the source has no such position.
  BatchWalk(const BatchSource& source, Position start, RankBatches share = {});

  /// Whether no micro-batch falls to this process.
  bool empty() const { return share_.of_epoch(num_batches_) == 0; }
  /// The `number`-th of this process, from 0, or the slice of it that falls to this process, which
  /// may be empty. Needs !empty(); several threads may call it at once.
  Batch load(int64_t number) const;

 private:
  const BatchSource* source_;
  int64_t num_batches_;
  Position start_;
  RankBatches share_;
};

}  // namespace stretto::data
