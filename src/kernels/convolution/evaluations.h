#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convolution/filtering.h"
#include "kernels/gemm/combination.h"

/// The algorithm of filtering.h as tables: which sums of rows and of weights are multiplied, and
/// how two outputs are made of the products.
///
/// Outputs and taps are polynomials that are evaluated at a few points (Toom & Cook), so that
/// products at one point add up whatever chunk they come from. Two outputs need as many points as
/// the chunk has taps, and one more.
namespace stretto::kernels::evaluations {

constexpr int kPoints = 5;  // 0, 1, -1, 2, infinity
constexpr int kMostTaps = 4;

/// Output i = sum over points of kOutputs[i][point] times the product at the point.
constexpr float kOutputs[2][kPoints] = {{1, 1, 1, 1, 0}, {0, 1, -1, 2, 1}};

/// What is multiplied at one point: a sum of the chunk's weights, a sum of the rows that it sees.
struct Evaluation {
  float weights[kMostTaps] = {}, rows[kMostTaps + 1] = {};
  /// Chunks of fewer taps need fewer points.
  bool is_used() const;
};

/// Taps that are evaluated together.
struct Chunk {
  int64_t first, taps;

  const Evaluation& at(int point) const;
  /// The sum of rows at a point; entries are columns of Tiles::inputs.
  Combination rows_at(int point) const;
};

/// As few chunks as hold the taps, as equal as can be: fewer products, and more chunks of three,
/// whose sums are the most exact.
std::vector<Chunk> chunks_of(int64_t kernel);

/// The two outputs' shares in the product at a point; entries are columns of Tiles::outputs.
Combination outputs_at(int point);

/// All products at one point, of each chunk that has it. Entries of rows are columns of
/// Tiles::inputs, those of weights are taps.
struct PointProduct {
  int point;
  std::vector<Combination> rows, weights;
};

std::vector<PointProduct> products_of(int64_t kernel, TapOrder order);

}  // namespace stretto::kernels::evaluations
