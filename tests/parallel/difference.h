#pragma once

#include <ATen/ATen.h>

/// How far gradients and weights lie apart, for tests of ways to sum them.
namespace stretto::test {

/// |a - b| / |b|, Euclidean norms in double precision.
inline double difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).norm() / y.norm()).item<double>();
}

}  // namespace stretto::test
