#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"

namespace stretto::data {

/// Whether the order of micro-batches matters beyond chance.
enum class Order : uint8_t {
  kAny,    ///< micro-batches stand for themselves
  kLanes,  ///< each continues the lanes of an earlier one, as Batch::lanes says
};

/// The micro-batches of an epoch as a pure function of (seed, epoch, index): any batch can be asked
/// for at any time and in any order, from several threads at once.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Micro-batches of one epoch; the same for every epoch.
  virtual int64_t num_batches() const = 0;
  /// @param index in [0, num_batches())
  virtual Batch load(int64_t epoch, int64_t index) const = 0;
  /// The same as training takes it: with its Batch::epoch. A mixture has that of its source.
  virtual Batch load_for_training(int64_t epoch, int64_t index) const {
    Batch batch = load(epoch, index);
    batch.epoch = epoch;
    return batch;
  }
  /// `load(epoch, index).sample_ids`, without the tokens where that is cheaper.
  virtual std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const {
    return load(epoch, index).sample_ids;
  }
  /// With kLanes a lane comes at most once in an update, and always in the same micro-batch of it.
  /// Lanes in n groups, of which micro-batch i has group i mod n, keep this for each
  /// train.update_freq that divides n.
  virtual Order order() const { return Order::kAny; }
  /// What the learning rate of an update is multiplied by that begins with this micro-batch: 1
  /// unless updates are of different sizes by design (data/documents/lanes.h).
  virtual double rate_factor(int64_t /*epoch*/, int64_t /*index*/) const { return 1; }
  /// `load(epoch, index).lanes`, without the rest where that is cheaper.
  virtual std::vector<int32_t> lanes(int64_t epoch, int64_t index) const {
    return load(epoch, index).lanes;
  }
};

}  // namespace stretto::data
