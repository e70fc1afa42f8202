#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::compress {

/// Weights of one tensor, and which of them are pruned: 1 = it is.
struct PrunedWeights {
  std::span<const float> weights;
  std::span<uint8_t> pruned;  ///< as many
};

/// How many of `count` weights are zero at this share: floor(count * sparsity), where a share that
/// is a fraction in decimals (0.7) does not lose one by rounding.
int64_t num_pruned(int64_t count, double sparsity);

/// Prunes the smallest magnitudes of all tensors together until `count` are pruned. What is pruned
/// stays so, and counts; of equal magnitudes those that come first go first; NaN goes last.
/// Nothing is written to the weights. The same marks for any number of threads.
void prune_smallest(std::span<const PrunedWeights> tensors, int64_t count);

/// Prunes whole blocks of 32 rows and 32 columns of a matrix, smaller ones at its edges, in the
/// order of their mean squares, as long as no more than `count` weights are pruned. What is pruned
/// stays so, and counts; NaN goes last. Products of packed weights leave such blocks out
/// (kernels/quantised).
void prune_smallest_blocks(const PrunedWeights& matrix, int64_t columns, int64_t count);

/// How many are pruned.
int64_t count_pruned(std::span<const uint8_t> pruned);

}  // namespace stretto::compress
