#pragma once

#include <cstdint>

namespace stretto::kernels {

/// Label smoothing as linear_cross_entropy has it: what -log p of each class weighs. Over all
/// classes the weights sum to one.
struct SmoothingWeights {
  double each;   ///< of every class
  double extra;  ///< what the target has besides

  SmoothingWeights(double smoothing, int64_t num_classes)
      : each(smoothing / static_cast<double>(num_classes - 1)), extra(1 - smoothing - each) {}
};

}  // namespace stretto::kernels
