#include "kernels/convolution/evaluations.h"

#include <algorithm>

namespace stretto::kernels::evaluations {
namespace {

constexpr float kHalf = 1.0f / 2, kSixth = 1.0f / 6, kThird = 1.0f / 3;

/// For chunks of 1, 2, 3 and 4 taps, the points in their order.
constexpr Evaluation kChunks[kMostTaps][kPoints] = {
    {{{1}, {1}}, {}, {}, {}, {{1}, {0, 1}}},
    {{{1}, {1, -1}}, {{1, 1}, {0, 1}}, {}, {}, {{0, 1}, {0, -1, 1}}},
    {{{1}, {1, 0, -1}},
     {{kHalf, kHalf, kHalf}, {0, 1, 1}},
     {{kHalf, -kHalf, kHalf}, {0, -1, 1}},
     {},
     {{0, 0, 1}, {0, -1, 0, 1}}},
    {{{kHalf}, {2, -1, -2, 1}},
     {{kHalf, kHalf, kHalf, kHalf}, {0, 2, 1, -1}},
     {{kSixth, -kSixth, kSixth, -kSixth}, {0, -2, 3, -1}},
     {{kSixth, kThird, 2 * kThird, 4 * kThird}, {0, -1, 0, 1}},
     {{0, 0, 0, 1}, {0, 2, -1, -2, 1}}}};

/// The terms that count; term i is entry first_entry + i * step.
Combination combination_of(const float* factors, int64_t count, int64_t first_entry, int64_t step) {
  Combination sum{.count = 0};
  for (int64_t i = 0; i < count; ++i) {
    if (factors[i] == 0) continue;
    sum.entry[sum.count] = static_cast<int32_t>(first_entry + i * step);
    sum.factor[sum.count++] = factors[i];
  }
  return sum;
}

Combination weights_at(const Chunk& chunk, int point, int64_t kernel, TapOrder order) {
  const bool reverse = order == TapOrder::kReverse;
  return combination_of(chunk.at(point).weights, chunk.taps,
                        reverse ? kernel - 1 - chunk.first : chunk.first, reverse ? -1 : 1);
}

}  // namespace

bool Evaluation::is_used() const {
  return std::any_of(weights, weights + kMostTaps, [](float x) { return x != 0; });
}

const Evaluation& Chunk::at(int point) const {
  return kChunks[taps - 1][point];
}

Combination Chunk::rows_at(int point) const {
  return combination_of(at(point).rows, taps + 1, first, 1);
}

std::vector<Chunk> chunks_of(int64_t kernel) {
  const int64_t count = (kernel + kMostTaps - 1) / kMostTaps;
  std::vector<Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * kernel / count;
    chunks.push_back({first, (i + 1) * kernel / count - first});
  }
  return chunks;
}

Combination outputs_at(int point) {
  const float both[2] = {kOutputs[0][point], kOutputs[1][point]};
  return combination_of(both, 2, 0, 1);
}

std::vector<PointProduct> products_of(int64_t kernel, TapOrder order) {
  std::vector<PointProduct> all;
  for (int point = 0; point < kPoints; ++point) {
    PointProduct product{.point = point};
    for (const Chunk& chunk : chunks_of(kernel)) {
      if (!chunk.at(point).is_used()) continue;
      product.rows.push_back(chunk.rows_at(point));
      product.weights.push_back(weights_at(chunk, point, kernel, order));
    }
    if (!product.rows.empty()) all.push_back(product);
  }
  return all;
}

}  // namespace stretto::kernels::evaluations
