#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/arena.h"
#include "optim/held_elements.h"
#include "optim/optim_options.h"

namespace stretto::optim {

/// The elements of one tensor that lie in a slice, counted in the arena; size() is 0 where none do.
inline Slice part_in(const Arena::Slot& slot, Slice slice) {
  const int64_t begin = std::max(slot.offset, slice.begin);
  return {begin, std::max(begin, std::min(slot.offset + slot.numel, slice.end))};
}

/// Adds numbers over the processes that step slices of one arena; empty = there is one process.
using SumOverRanks = std::function<void(std::span<double>)>;

/// Completes a flat tensor of which each process has a part: rank r has [begins[r], begins[r + 1]),
/// and every rank gets all of it. Collective; empty = there is one process.
using GatherOverRanks =
    std::function<void(const torch::Tensor& values, std::span<const int64_t> begins)>;

/// The inputs of one update.
struct UpdateStep {
  double lr = 0;
  double grad_scale =
      1;               ///< gradients are multiplied by this first: 1 / tokens, unscaling, clipping
  int64_t number = 1;  ///< 1 for the first update; bias correction needs it
  SumOverRanks sum_over_ranks = {};  ///< for layer-wise norms when only a slice is stepped
  /// Where the slices of all ranks begin, and the arena's end: for rules that need whole matrices
  /// when only a slice is stepped. Empty = there is one process.
  std::span<const int64_t> slice_begins = {};
  GatherOverRanks gather_over_ranks = {};
};

/// A tensor of an optimizer's state.
struct StateTensor {
  std::string name;
  torch::Tensor values;    ///< fp32; flat: [held.place_of(slice).size()], else [any]
  bool flat = true;        ///< true: the slice's elements of a buffer for the whole arena
  HeldElements held = {};  ///< what of the arena that buffer has, where it is flat
};

/// The tensors that a buffer for the whole arena has, at their offsets in the buffer.
std::vector<Arena::Slot> slots_in(const HeldElements& held, const std::vector<Arena::Slot>& slots);

/// An update rule over the arena or a slice of it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Steps the slice that the optimizer was made for; other elements stay.
  virtual void step(Arena& arena, const UpdateStep& update) = 0;
  /// The state as it stands; the tensors are the optimizer's own and may be written to.
  virtual std::vector<StateTensor> state() = 0;
};

/// By `options.name`, for the whole arena or a slice; an unknown name throws Error(kUsage) that
/// lists the known ones. Per-tensor state (novograd) and factored state (adafactor) is not cut:
/// adafactor refuses a slice that is neither the whole arena nor empty with Error(kUsage).
std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena);
std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena,
                                          Slice slice);

/// Factor that brings a norm under `clip_norm`: min(1, clip_norm / (norm + 1e-6)); 1 when clip_norm
/// is 0.
double clip_factor(double norm, double clip_norm);

}  // namespace stretto::optim
