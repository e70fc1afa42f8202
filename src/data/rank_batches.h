#pragma once

#include <cstdint>

namespace stretto::data {

/// Place of a micro-batch in the order of training.
struct Position {
  int64_t epoch = 0;
  int64_t index = 0;  ///< inside the epoch
  bool operator==(const Position&) const = default;
};

/// A micro-batch of an update, or one of the slices that several processes make of it.
struct MicroBatchSlice {
  int64_t micro = 0;  ///< number of the micro-batch in its update
  int64_t part = 0, parts = 1;
  bool is_whole() const { return parts == 1; }
  bool operator==(const MicroBatchSlice&) const = default;
};

/// A slice in the order of training.
struct PlacedSlice {
  Position position;  ///< of its micro-batch
  MicroBatchSlice slice;
  bool operator==(const PlacedSlice&) const = default;
};

/// The micro-batches that fall to one of several processes.
///
/// An epoch of n micro-batches is cut into updates of `update_freq`; the last may have fewer, since
/// an update never crosses an epoch. Micro-batch j of an update is that of rank j % size, as long
/// as there is one for every rank. What is left over, r < size micro-batches, falls to ranks 0 to
/// r - 1; with `cut` each is shared by size / r ranks instead, so that a process more makes an
/// update shorter, down to a part of one micro-batch. The default is one process, to which all
/// fall.
struct RankBatches {
  int64_t update_freq = 1;
  int64_t rank = 0;
  int64_t size = 1;
  bool cut = false;

  /// Slices of this rank among the first `count` micro-batches of an update. Rank 0 has the most.
  int64_t of_update(int64_t count) const;
  /// The `turn`-th of them.
  MicroBatchSlice slice(int64_t turn, int64_t count) const;
  /// Slices of this rank in an epoch of `num_batches`.
  int64_t of_epoch(int64_t num_batches) const {
    return num_batches / update_freq * of_update(update_freq) +
           of_update(num_batches % update_freq);
  }
  /// Where this rank's `number`-th slice (from 0) at or after `start`, which begins an update, is.
  /// Needs of_epoch(num_batches) > 0.
  PlacedSlice at(Position start, int64_t number, int64_t num_batches) const;

 private:
  /// Ranks that share a micro-batch which is left over.
  int64_t sharers(int64_t count) const;
};

/// How long an update of `count` micro-batches takes on `size` processes: in micro-batches, of the
/// process that has the most.
double rounds_of_update(int64_t count, int64_t size, bool cut);

}  // namespace stretto::data
