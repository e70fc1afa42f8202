#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "distributed/process_group.h"

namespace stretto::parallel {

/// Sums the gradients of an update's micro-batches in their order, whatever process had them:
/// dist.deterministic.
///
/// Micro-batch j of the update is that of rank j % size in round j / size. In each round every rank
/// gets its slice of all ranks' gradients and adds them to its accumulator one after the other, so
/// that each element sees the same additions for any number of processes.
class OrderedSum {
 public:
  OrderedSum(at::Tensor grads, distributed::ProcessGroup group, std::vector<int64_t> slice_begins);

  /// Starts an update in which this rank has `micro_batches`. Collective.
  void begin(int64_t micro_batches);
  /// Adds the micro-batch whose gradients stand in `grads` on each rank that still has one.
  /// Collective; all ranks call it together until all rounds are over.
  void add_round();
  bool has_rounds() const { return round_ < rounds_; }
  /// Writes this rank's slice of the sum to `grads`; with `everywhere` all slices, on every rank.
  /// Collective.
  void finish(bool everywhere);

  int64_t bytes() const { return bytes_; }  ///< handed to the process group since begin()

 private:
  int64_t begin_of_slice() const { return begins_[static_cast<size_t>(group_.rank())]; }

  at::Tensor grads_;
  distributed::ProcessGroup group_;
  std::vector<int64_t> begins_;
  at::Tensor sum_;                // [this rank's slice]
  at::Tensor received_;           // [ranks * this rank's slice]
  std::vector<int64_t> batches_;  // by rank: micro-batches of this update
  int64_t round_ = 0, rounds_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace stretto::parallel
