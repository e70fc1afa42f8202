#include "compress/magnitude.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace stretto::compress {
namespace {

/// Tensors with marks of their own.
struct Weights {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<uint8_t>> pruned;

  explicit Weights(std::vector<std::vector<float>> given) : values(std::move(given)) {
    for (const auto& tensor : values) pruned.emplace_back(tensor.size());
  }
  void prune(int64_t count) {
    std::vector<PrunedWeights> views;
    for (size_t i = 0; i < values.size(); ++i) {
      views.push_back({.weights = values[i], .pruned = pruned[i]});
    }
    prune_smallest(views, count);
  }
  int64_t count() const {
    return std::accumulate(
        pruned.begin(), pruned.end(), int64_t{0},
        [](int64_t sum, const auto& marks) { return sum + count_pruned(marks); });
  }
};

Weights random_weights(const std::vector<size_t>& sizes) {
  RandomStream random(3);
  std::vector<std::vector<float>> values;
  for (const size_t size : sizes) {
    auto& tensor = values.emplace_back(size);
    for (float& value : tensor) value = static_cast<float>(random.normal());
  }
  return Weights(std::move(values));
}

TEST(Magnitude, TheSmallestOfAllTensorsGoFirst) {
  Weights weights({{3, -1, 0.5F}, {-0.25F, 4, 2}});
  weights.prune(3);
  EXPECT_EQ(weights.pruned[0], (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(weights.pruned[1], (std::vector<uint8_t>{1, 0, 0}));
}

TEST(Magnitude, OfEqualOnesTheFirstGo) {
  Weights weights({{1, -1, 1}, {1, 0.5F, -1}});
  weights.prune(3);
  EXPECT_EQ(weights.pruned[0], (std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(weights.pruned[1], (std::vector<uint8_t>{0, 1, 0}));
}

TEST(Magnitude, AgreesWithAFullSort) {
  for (const int64_t count : {0, 1, 17, 150, 399, 400}) {
    Weights weights = random_weights({100, 300});
    std::vector<std::pair<float, size_t>> sorted;
    for (size_t i = 0; i < 400; ++i) {
      const float value = i < 100 ? weights.values[0][i] : weights.values[1][i - 100];
      sorted.emplace_back(std::fabs(value), i);
    }
    std::sort(sorted.begin(), sorted.end());
    weights.prune(count);
    EXPECT_EQ(weights.count(), count);
    for (size_t rank = 0; rank < 400; ++rank) {
      const size_t i = sorted[rank].second;
      const uint8_t mark = i < 100 ? weights.pruned[0][i] : weights.pruned[1][i - 100];
      EXPECT_EQ(mark, static_cast<int64_t>(rank) < count ? 1 : 0) << count << " " << rank;
    }
  }
}

// A weight that is pruned is zero, but what makes it stay so is its mark.
TEST(Magnitude, WhatIsPrunedStaysSoAndCounts) {
  Weights weights = random_weights({50, 70});
  weights.prune(30);
  const auto before = weights.pruned;
  for (auto& tensor : weights.values) {
    for (float& value : tensor) value = 1 / value;
  }
  weights.prune(80);
  EXPECT_EQ(weights.count(), 80);
  for (size_t t = 0; t < 2; ++t) {
    for (size_t i = 0; i < before[t].size(); ++i) EXPECT_GE(weights.pruned[t][i], before[t][i]);
  }
  weights.prune(20);
  EXPECT_EQ(weights.count(), 80);
}

TEST(Magnitude, WhatIsNoNumberGoesLast) {
  Weights weights(
      std::vector<std::vector<float>>{{std::numeric_limits<float>::quiet_NaN(), 100, 1, 2}});
  weights.prune(3);
  EXPECT_EQ(weights.pruned[0], (std::vector<uint8_t>{0, 1, 1, 1}));
  weights.prune(9);
  EXPECT_EQ(weights.count(), 4);
}

TEST(Magnitude, BlocksGoByTheirMeanSquares) {
  constexpr int64_t kWidth = 70, kHeight = 40;  // blocks of 32, 32 and 6 columns; 32 and 8 rows
  std::vector<float> weights(kWidth * kHeight, 1);
  const auto fill = [&](int64_t row, int64_t column, float value) {
    for (int64_t r = row; r < std::min(row + 32, kHeight); ++r) {
      for (int64_t c = column; c < std::min(column + 32, kWidth); ++c) {
        weights[static_cast<size_t>(r * kWidth + c)] = value;
      }
    }
  };
  fill(0, 32, 0.25F);
  fill(32, 64, -0.5F);
  fill(0, 64, std::numeric_limits<float>::quiet_NaN());
  std::vector<uint8_t> pruned(weights.size());
  const PrunedWeights matrix{.weights = weights, .pruned = pruned};
  prune_smallest_blocks(matrix, kWidth, 1023);
  EXPECT_EQ(count_pruned(pruned), 0) << "the first block has 1024 weights";
  prune_smallest_blocks(matrix, kWidth, 1024 + 8 * 6 + 5);
  EXPECT_EQ(count_pruned(pruned), 1024 + 8 * 6);
  EXPECT_EQ(pruned[32], 1);
  EXPECT_EQ(pruned[31], 0);
  EXPECT_EQ(pruned[64], 0);
  EXPECT_EQ(pruned[32 * kWidth + 64], 1);
  const std::vector<uint8_t> before = pruned;
  prune_smallest_blocks(matrix, kWidth, 10);
  EXPECT_EQ(pruned, before) << "what is pruned stays so";
  prune_smallest_blocks(matrix, kWidth, kWidth * kHeight);
  EXPECT_EQ(count_pruned(pruned), kWidth * kHeight);
}

TEST(Magnitude, SharesInDecimalsLoseNoWeightByRounding) {
  EXPECT_EQ(num_pruned(100, 0.29), 29);
  EXPECT_EQ(num_pruned(10, 0.7), 7);
  EXPECT_EQ(num_pruned(3, 0.5), 1);
  EXPECT_EQ(num_pruned(0, 0.5), 0);
  EXPECT_EQ(num_pruned(1000, 0), 0);
}

}  // namespace
}  // namespace stretto::compress
