#pragma once

#include <cstdint>
#include <vector>

#include "optim/adam.h"

namespace stretto::optim {

/// Adam that leaves a row of an embedding as it is, with both of its moments, in an update that did
/// not look it up (TensorFlow's LazyAdamOptimizer). Everything else is Adam: t counts all updates,
/// and tensors that `optim.lazy_tables` does not name are stepped whole.
///
/// A row was looked up if its gradient, summed over micro-batches and processes, has an element
/// that is not zero; so neither a loss scale nor the number of processes decides. Where every row
/// has one, the bits are those of `adam`. Tables that are output projections too have a dense
/// gradient, and noise (`optim.gradient_noise`) would give one to every table. A row that is left
/// does not decay either.
///
/// A row that lies in two slices is one row: its owners ask each other with sum_over_ranks. Such
/// slices begin at multiples of kernels::kStepBlock (TORCH_CHECK). On a GPU one byte for each row
/// is read back.
class LazyAdam : public Adam {
 public:
  /// Throws Error(kUsage) for a pattern that matches no parameter.
  LazyAdam(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;

 private:
  /// The rows of one table that have elements in the slice.
  struct Table {
    int64_t offset = 0;           ///< of row 0, counted from the slice's begin; may be negative
    int64_t columns = 0;          ///< elements of a row
    int64_t first = 0, last = 0;  ///< rows [first, last)
    std::vector<uint8_t> used;    ///< of each: whether it has a gradient
  };
  /// A row of any table that a cut at a multiple of kernels::kStepBlock divides.
  struct CutRow {
    int64_t table = -1;  ///< of tables_; -1: no element of it lies in the slice
    int64_t row = 0;
  };
  /// Elements that are left, counted from the slice's begin.
  struct Hole {
    int64_t begin, end;
  };

  void add_table(const Arena::Slot& slot);
  void find_used_rows(const torch::Tensor& grads, Table& table) const;
  void agree_on_cut_rows(const UpdateStep& update);
  std::vector<Hole> unused_rows() const;

  std::vector<Table> tables_;
  std::vector<CutRow> cut_rows_;  ///< of the whole arena: the same on every process
};

}  // namespace stretto::optim
