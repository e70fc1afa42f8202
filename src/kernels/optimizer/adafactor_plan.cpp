#include "kernels/optimizer/adafactor_plan.h"

#include <algorithm>

namespace stretto::kernels {
namespace {

int64_t num_tiles(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

/// Threads for different entries: few terms are added by one thread in order; many are shared by
/// several, still at least 8 neighbours to an access.
int32_t width_for(int64_t terms) {
  if (terms <= kSmallMatrix) return static_cast<int32_t>(kAdafactorThreads);
  return terms <= 512 ? 32 : 8;
}

class Planner {
 public:
  void add(const AdafactorTensor& tensor) {
    if (tensor.numel() == 0) return;
    const bool small = std::max(tensor.rows, tensor.columns) <= kSmallMatrix;
    if (small || !tensor.factored)
      add_small(tensor);
    else
      add_tiles(tensor);
    add_elements(tensor);
  }
  AdafactorPlan take() { return std::move(plan_); }

 private:
  /// Cuts entries [0, count) of `fold` into blocks.
  void add_fold(FactorFold fold, int64_t count) {
    fold.width = width_for(fold.terms);
    for (int64_t first = 0; first < count; first += fold.width) {
      fold.first = first;
      fold.last = std::min(first + fold.width, count);
      plan_.folds.push_back(fold);
    }
  }

  void add_small(const AdafactorTensor& t) {
    FactorFold fold{};
    fold.source = t.begin;
    fold.from_grads = true;
    if (t.factored) {
      fold.of_rows = true;
      fold.moments = t.row_moments;
      fold.group = 1;
      fold.group_step = t.columns;
      fold.term_step = 1;
      fold.terms = static_cast<int32_t>(t.columns);
      fold.divisor = static_cast<double>(t.columns);
      add_fold(fold, t.num_rows());
    }
    fold.of_rows = false;
    fold.moments = t.column_moments;
    fold.group = t.columns;
    fold.group_step = t.rows * t.columns;
    fold.term_step = t.columns;
    fold.terms = static_cast<int32_t>(t.rows);
    fold.divisor = static_cast<double>(t.rows);
    add_fold(fold, t.num_columns());
  }

  /// Partial sums: [column tile, row] of all matrices' rows, then [matrix, row tile, column].
  void add_tiles(const AdafactorTensor& t) {
    // Narrow matrices get longer tiles, for the same work in a block.
    const int64_t tile_rows = std::clamp(kAdafactorBlock / t.columns, kTileRows, kAdafactorThreads);
    const int64_t across = num_tiles(t.columns, kTileColumns), down = num_tiles(t.rows, tile_rows);
    const int64_t of_rows = plan_.num_partials, of_columns = of_rows + across * t.num_rows();
    plan_.num_partials = of_columns + down * t.num_columns();
    for (int64_t index = 0; index < t.matrices * down * across; ++index) {
      const int64_t x = index % across, strip = index / across;  // strip = matrix, row tile
      const int64_t row = strip / down * t.rows + strip % down * tile_rows;
      const int64_t left = t.rows - strip % down * tile_rows, column = x * kTileColumns;
      FactorTile tile{};
      tile.grads = t.begin + row * t.columns + column;
      tile.stride = t.columns;
      tile.row_sums = of_rows + x * t.num_rows() + row;
      tile.column_sums = of_columns + strip * t.columns + column;
      tile.rows = static_cast<int32_t>(std::min(tile_rows, left));
      tile.columns = static_cast<int32_t>(std::min(kTileColumns, t.columns - column));
      plan_.tiles.push_back(tile);
    }
    FactorFold fold{};
    fold.of_rows = true;
    fold.source = of_rows;
    fold.moments = t.row_moments;
    fold.group = fold.term_step = t.num_rows();
    fold.terms = static_cast<int32_t>(across);
    fold.divisor = static_cast<double>(t.columns);
    add_fold(fold, t.num_rows());
    fold.of_rows = false;
    fold.source = of_columns;
    fold.moments = t.column_moments;
    fold.group = fold.term_step = t.columns;
    fold.group_step = down * t.columns;
    fold.terms = static_cast<int32_t>(down);
    fold.divisor = static_cast<double>(t.rows);
    add_fold(fold, t.num_columns());
  }

  void add_elements(const AdafactorTensor& t) {
    const int64_t shares = plan_.num_shares;
    plan_.num_shares += t.num_rows();
    const bool by_thread = t.rows <= kSmallMatrix;
    const int64_t some = by_thread ? kAdafactorThreads : 1;
    for (int64_t matrix = 0; matrix < t.matrices; matrix += some)
      plan_.shares.push_back({t.row_moments + matrix * t.rows, shares + matrix * t.rows, t.rows,
                              std::min(some, t.matrices - matrix), t.factored, by_thread});
    const auto tensor = static_cast<int64_t>(plan_.tensors.size());
    const auto first_block = static_cast<int64_t>(plan_.blocks.size());
    for (int64_t begin = 0; begin < t.numel(); begin += kAdafactorBlock)
      plan_.blocks.push_back({tensor, begin, std::min(begin + kAdafactorBlock, t.numel())});
    plan_.tensors.push_back({t.begin, t.rows, t.columns, shares, t.column_moments, first_block,
                             static_cast<int64_t>(plan_.blocks.size()),
                             static_cast<double>(t.numel()), t.lr_scale, t.weight_decay});
  }

  AdafactorPlan plan_;
};

}  // namespace

AdafactorPlan plan_adafactor(const std::vector<AdafactorTensor>& tensors) {
  Planner planner;
  for (const AdafactorTensor& tensor : tensors) planner.add(tensor);
  return planner.take();
}

}  // namespace stretto::kernels
