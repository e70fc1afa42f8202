#include "compress/magnitude.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stretto::compress {
namespace {

float magnitude(float weight) {
  const float size = std::fabs(weight);
  return std::isnan(size) ? std::numeric_limits<float>::infinity() : size;
}

// The magnitudes of all weights that are not pruned yet.
std::vector<float> magnitudes_left(std::span<const PrunedWeights> tensors) {
  size_t left = 0;
  for (const auto& tensor : tensors) {
    left += tensor.weights.size() - static_cast<size_t>(count_pruned(tensor.pruned));
  }
  std::vector<float> sizes;
  sizes.reserve(left);
  for (const auto& tensor : tensors) {
    for (size_t i = 0; i < tensor.weights.size(); ++i) {
      if (tensor.pruned[i] == 0) sizes.push_back(magnitude(tensor.weights[i]));
    }
  }
  return sizes;
}

/// A block of a matrix.
struct Block {
  int64_t row = 0, column = 0, rows = 0, columns = 0;
  double mean_square = 0;
  int64_t left = 0;  ///< weights that are not pruned yet
};

/// Calls visit(index of a weight) for each of a block.
template <class Visit>
void for_each_in(const Block& block, int64_t width, const Visit& visit) {
  for (int64_t row = block.row; row < block.row + block.rows; ++row) {
    for (int64_t column = block.column; column < block.column + block.columns; ++column) {
      visit(static_cast<size_t>(row * width + column));
    }
  }
}

std::vector<Block> blocks_of(const PrunedWeights& matrix, int64_t width) {
  constexpr int64_t kSide = 32;
  const auto height = static_cast<int64_t>(matrix.weights.size()) / width;
  std::vector<Block> blocks;
  for (int64_t row = 0; row < height; row += kSide) {
    for (int64_t column = 0; column < width; column += kSide) {
      Block block{.row = row,
                  .column = column,
                  .rows = std::min(kSide, height - row),
                  .columns = std::min(kSide, width - column)};
      double sum = 0;
      for_each_in(block, width, [&](size_t i) {
        const auto size = static_cast<double>(magnitude(matrix.weights[i]));
        sum += size * size;
        if (matrix.pruned[i] == 0) ++block.left;
      });
      block.mean_square = sum / static_cast<double>(block.rows * block.columns);
      blocks.push_back(block);
    }
  }
  return blocks;
}

}  // namespace

int64_t num_pruned(int64_t count, double sparsity) {
  constexpr double kRounding = 1e-6;  // 100 * 0.29 is 28.999999999999996
  const double wanted = std::floor(static_cast<double>(count) * sparsity + kRounding);
  return std::clamp<int64_t>(static_cast<int64_t>(wanted), 0, count);
}

int64_t count_pruned(std::span<const uint8_t> pruned) {
  return std::count_if(pruned.begin(), pruned.end(), [](uint8_t one) { return one != 0; });
}

void prune_smallest(std::span<const PrunedWeights> tensors, int64_t count) {
  for (const auto& tensor : tensors) count -= count_pruned(tensor.pruned);
  if (count <= 0) return;
  std::vector<float> sizes = magnitudes_left(tensors);
  if (sizes.empty()) return;
  count = std::min(count, static_cast<int64_t>(sizes.size()));
  const auto last = sizes.begin() + (count - 1);
  std::nth_element(sizes.begin(), last, sizes.end());
  const float largest = *last;  // that is pruned
  int64_t equal =
      count - std::count_if(sizes.begin(), last, [&](float size) { return size < largest; });
  for (const auto& tensor : tensors) {
    for (size_t i = 0; i < tensor.weights.size(); ++i) {
      if (tensor.pruned[i] != 0) continue;
      const float size = magnitude(tensor.weights[i]);
      if (size > largest || (size == largest && equal == 0)) continue;
      if (size == largest) --equal;
      tensor.pruned[i] = 1;
    }
  }
}

void prune_smallest_blocks(const PrunedWeights& matrix, int64_t columns, int64_t count) {
  if (columns <= 0) return;
  count -= count_pruned(matrix.pruned);
  std::vector<Block> blocks = blocks_of(matrix, columns);
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.mean_square < b.mean_square; });
  for (const Block& block : blocks) {
    if (block.left > count) return;
    for_each_in(block, columns, [&](size_t i) { matrix.pruned[i] = 1; });
    count -= block.left;
  }
}

}  // namespace stretto::compress
