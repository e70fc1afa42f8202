#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "nn/init_rules.h"

namespace stretto::nn {

/// A tensor that is drawn.
struct DrawnShape {
  int64_t rows = 1;  ///< of a vector 1
  int64_t columns = 0;
  int64_t parts = 1;  ///< the rows are so many equal matrices merged into one, drawn as if alone
  at::ScalarType dtype = at::kFloat;  ///< or kDouble
};

/// [rows, columns] on the CPU, as the rule has it.
///
/// Row r reads the Philox stream (key, r) alone, in double: values depend on nothing but key and
/// shape, not on the number of threads. Orthonormal rows or columns come of such standard normals:
/// they are the Q of their QR decomposition with a positive diagonal of R, which makes Q unique and
/// its distribution uniform (Mezzadri 2007, arXiv:math-ph/0609050).
at::Tensor draw(const InitRule& rule, const DrawnShape& shape, uint64_t key);

}  // namespace stretto::nn
