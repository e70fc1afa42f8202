#pragma once

#include <cstdint>
#include <vector>

/// How the CUDA step of Adafactor (cuda_adafactor.cu) is cut into blocks of threads, so that one
/// set of launches steps any number of tensors. Made on the host, once; no libtorch, and C++17, for
/// device code sees it too. Offsets and sizes are in elements.
///
/// M matrices of R rows and C columns lie one after another; a vector of N elements is one matrix
/// of one row, [1, 1, N], whose second moments are those of its columns.
namespace stretto::kernels {

/// One tensor of the flat buffers.
struct AdafactorTensor {
  int64_t begin = 0;  ///< of its elements among parameters and gradients
  int64_t matrices = 1, rows = 1, columns = 1;
  bool factored = true;                         ///< no: a vector, which has no moments of rows
  int64_t row_moments = 0, column_moments = 0;  ///< begin of its M R and M C moving means
  double lr_scale = 1, weight_decay = 0;

  int64_t num_rows() const { return matrices * rows; }
  int64_t num_columns() const { return matrices * columns; }
  int64_t numel() const { return matrices * rows * columns; }
  int64_t row_moments_end() const { return row_moments + (factored ? num_rows() : 0); }
  int64_t column_moments_end() const { return column_moments + num_columns(); }
};

/// Up to so many columns and rows of one matrix are summed by one block before anything else.
constexpr int64_t kTileColumns = 256, kTileRows = 32;

/// Matrices of no more rows and columns have no tiles: their rows and columns are summed straight
/// from the gradient. Packed by the entry, thousands of 3 x 3 matrices keep a GPU busy.
constexpr int64_t kSmallMatrix = 64;

/// Elements of one block in the passes over single elements.
constexpr int64_t kAdafactorBlock = int64_t{1} << 13;

/// Threads of one block; entries or matrices of one block where each has a thread of its own.
constexpr int64_t kAdafactorThreads = 256;

/// Part of one matrix: sums of squares of its rows and columns go to the partial sums.
struct FactorTile {
  int64_t grads, stride;  ///< first element, and from row to row
  int64_t row_sums, column_sums;
  int32_t rows, columns;
};

/// Entries [first, last) of the moving means of one tensor's rows, or columns. Entry i moves
/// towards a sum of `terms` values, of which the first is
/// source + i / group * group_step + i % group, over `divisor`.
struct FactorFold {
  int64_t source, group, group_step;
  int64_t term_step;  ///< from a value to the next of the same entry
  int64_t first, last, moments;
  double divisor;
  int32_t terms;
  int32_t width;    ///< threads for different entries; the others share each entry's terms
  bool from_grads;  ///< squares of the scaled gradient are added, else partial sums
  bool of_rows;     ///< else of columns
};

/// Matrices of one tensor for which the shares of rows in their mean are computed.
struct FactorShares {
  int64_t moments, shares;  ///< of the first row
  int64_t rows, matrices;   ///< of each a thread, or one matrix for all threads
  bool factored;            ///< no: the one share is 1
  bool by_thread;
};

/// Elements [begin, end) of a tensor, counted from its first.
struct FactorBlock {
  int64_t tensor, begin, end;
};

/// One tensor as the passes over single elements see it.
struct FactorTensor {
  int64_t begin, rows, columns, shares, column_moments;
  int64_t first_block, last_block;  ///< in AdafactorPlan::blocks
  double count, lr_scale, weight_decay;
};

struct AdafactorPlan {
  std::vector<FactorTile> tiles;
  std::vector<FactorFold> folds;
  std::vector<FactorShares> shares;
  std::vector<FactorBlock> blocks;
  std::vector<FactorTensor> tensors;         ///< those that have elements
  int64_t num_partials = 0, num_shares = 0;  ///< room that the kernels need
};

/// Each list is one launch, a block of threads for each entry.
AdafactorPlan plan_adafactor(const std::vector<AdafactorTensor>& tensors);

}  // namespace stretto::kernels
