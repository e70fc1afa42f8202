#pragma once

#include <cstdint>

namespace stretto::kernels {

/// A sum of lines of a matrix, each times a factor: what the operands of a product are made of when
/// they are put together while they are copied. `entry` says which of the lines that stand ready.
struct Combination {
  static constexpr int kMost = 5;
  int32_t count = 1;
  int32_t entry[kMost] = {};
  float factor[kMost] = {1};
};

}  // namespace stretto::kernels
