#pragma once

#include <cstdint>

namespace stretto::data {

/// Place of a micro-batch in the order of training.
struct Position {
  int64_t epoch = 0;
  int64_t index = 0;  ///< inside the epoch
  bool operator==(const Position&) const = default;
};

/// The micro-batches that fall to one of several processes.
///
/// An epoch of n micro-batches is cut into updates of `update_freq`; the last may have fewer, since
/// an update never crosses an epoch. Micro-batch j of an update is that of rank j % size. The
/// default is one process, to which all fall.
struct Share {
  int64_t update_freq = 1;
  int64_t rank = 0;
  int64_t size = 1;

  /// Micro-batches of this rank among the first `count` of an update.
  int64_t of_update(int64_t count) const {
    return count > rank ? (count - rank - 1) / size + 1 : 0;
  }
  /// Micro-batches of this rank in an epoch of `num_batches`.
  int64_t of_epoch(int64_t num_batches) const {
    return num_batches / update_freq * of_update(update_freq) +
           of_update(num_batches % update_freq);
  }
  /// This rank's `number`-th micro-batch (from 0) at or after `start`, which begins an update.
  /// Needs of_epoch(num_batches) > 0.
  Position at(Position start, int64_t number, int64_t num_batches) const;
};

}  // namespace stretto::data
