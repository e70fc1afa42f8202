#pragma once

#include <cstdint>
#include <vector>

#include "distributed/process_group.h"
#include "optim/optimizer.h"

namespace stretto::parallel {

/// The optimizer's state on its way to rank 0, which saves it, and from there back.
///
/// On a rank a flat tensor holds the elements of the arena that the rank owns, or of them those of
/// StateTensor::held; on rank 0 it comes together for the whole arena. It travels in chunks, so
/// that no other rank needs room for more than one of them. Tensors that are not flat are the same
/// on every rank.
class ShardedState {
 public:
  struct Setup {
    bool sliced = false;                ///< each rank owns a slice; else rank 0 owns everything
    std::vector<int64_t> slice_begins;  ///< rank r's slice is begins[r] .. begins[r + 1]
    optim::Slice owned;                 ///< where scatter() writes on this rank
    int64_t chunk = 0;                  ///< elements that are sent at once, over all ranks
  };

  ShardedState(distributed::ProcessGroup group, Setup setup);

  /// Zeros, shaped as gather() gives `mine` on rank 0, in host memory.
  std::vector<optim::StateTensor> empty(const std::vector<optim::StateTensor>& mine) const;
  /// What all ranks have, on rank 0; elsewhere empty. Collective when `sliced`.
  std::vector<optim::StateTensor> gather(const std::vector<optim::StateTensor>& mine) const;
  /// Overwrites `mine` on all ranks with what rank 0 has. Collective. `whole` only matters on rank
  /// 0, where it has a tensor for each of `mine`.
  void scatter(const std::vector<optim::StateTensor>& whole,
               const std::vector<optim::StateTensor>& mine) const;

 private:
  int64_t arena_size() const { return setup_.slice_begins.back(); }
  /// Elements of a flat tensor that is whole.
  int64_t whole_size(const optim::StateTensor& tensor) const {
    return tensor.held.count_before(arena_size());
  }
  at::Tensor gather_slices(const optim::StateTensor& tensor) const;
  void scatter_slices(const at::Tensor& whole, const optim::StateTensor& tensor) const;
  void broadcast_numbers(const optim::StateTensor& mine, const at::Tensor& given) const;

  distributed::ProcessGroup group_;
  Setup setup_;
};

}  // namespace stretto::parallel
