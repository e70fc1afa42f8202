#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/loading.h"
#include "data/prefetcher.h"
#include "data/rank_batches.h"
#include "train/prepared.h"

namespace stretto::train {

/// This rank's micro-batches of an update, in the order of the data, made ready ahead of it on the
/// loader's threads: loaded, cut, with their tensors.
///
/// An update has `update_freq` micro-batches of all ranks together, fewer at the end of an epoch,
/// which it never crosses. data::RankBatches says which of them, or parts of them, a rank has.
class UpdateBatches {
 public:
  /// Reads nothing before seek(). The source must outlive it.
  UpdateBatches(const data::BatchSource& source, const data::RankBatches& share,
                data::Loading loading, Preparation preparation = {});
  ~UpdateBatches();

  /// Goes on from this place; begins an update.
  void seek(data::Position position);
  /// Where the next update begins.
  data::Position position() const { return position_; }

  /// Waits for the batches of the update that begins at position(); position() stays. Throws what
  /// loading or preparing one of them threw.
  /// @return its micro-batches, of all ranks
  int64_t load();
  /// Cuts a batch in two halves, which stand one after the other, with tensors of their own.
  void split(int64_t part);
  /// A batch of batches() with its tensors on the device. Throws where it has no memory for them.
  const Prepared& on_device(int64_t part);
  /// Moves position() behind the update.
  void advance();

  const std::vector<Prepared>& batches() const { return batches_; }
  /// What each of batches() is; parts after a split are alike.
  const std::vector<data::MicroBatchSlice>& slices() const { return slices_; }
  /// Where each of batches() stands in the data; parts of a split one have the same place.
  std::vector<data::Position> positions() const;
  /// A hash of the ids of all ranks' samples, in the order of micro-batches: the same on every
  /// rank.
  uint64_t hash() const;
  /// The lanes of each of the update's micro-batches, of all ranks: the same on every rank.
  std::vector<std::vector<int32_t>> lanes() const;

 private:
  /// For each of the update's micro-batches the batch, where this rank has the whole of it.
  std::vector<const data::Batch*> whole_batches() const;

  const data::BatchSource& source_;
  data::RankBatches share_;
  data::Loading loading_;
  Preparation preparation_;
  data::Position position_, first_;  // first_: of the loaded update
  int64_t count_ = 0;                // micro-batches of the loaded update
  std::vector<Prepared> batches_;
  std::vector<data::MicroBatchSlice> slices_;
  std::unique_ptr<data::Prefetcher<Prepared>> prefetcher_;
};

}  // namespace stretto::train
