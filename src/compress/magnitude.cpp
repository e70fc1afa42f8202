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

}  // namespace stretto::compress
