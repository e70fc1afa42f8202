#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace stretto::kernels::gemm {

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Rows of a product cut into items, of which there is one for each block of columns too: few and
/// large ones, of which each thread gets as many where there are rows enough. at::parallel_for
/// hands out neighbours, so that one item too many would keep a thread waiting for another.
class RowItems {
 public:
  static constexpr int64_t kUnit = 12;  ///< rows, a multiple of every level's tile

  /// @param most  rows that an item may have, a multiple of kUnit
  /// @param threads  that share the items
  RowItems(int64_t rows, int64_t column_blocks, int64_t most, int64_t threads)
      : rows_(rows), units_(divide_up(rows, kUnit)) {
    const int64_t even = threads / std::gcd(threads, column_blocks);
    if (rows == 0) return;
    count_ = std::clamp<int64_t>(divide_up(divide_up(rows, most), even) * even, 1,
                                 divide_up(rows, 2 * kUnit));
  }

  int64_t count() const { return count_; }
  /// 0 ≤ item ≤ count, of which there is one at least: row `first(item)` up to `first(item + 1)`.
  int64_t first(int64_t item) const { return std::min(item * units_ / count_ * kUnit, rows_); }

 private:
  int64_t rows_, units_, count_ = 0;
};

/// Threads that share the items of a product.
inline int64_t available_threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace stretto::kernels::gemm
