#include "optim/orthogonal.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/gemm/gemm.h"
#include "kernels/kernels.h"

namespace stretto::optim {
namespace {

constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;
constexpr double kLeastNorm = 1e-30;

double norm_on_cpu(const at::Tensor& x) {
  return std::max(std::sqrt(kernels::sum_of_squares(x.view({-1}))), kLeastNorm);
}

// x / |x|, without waiting for a GPU.
at::Tensor normalised(const at::Tensor& x) {
  if (!x.is_cpu()) return x / x.norm().clamp_min(kLeastNorm);
  return x * (1 / norm_on_cpu(x));
}

// a b; linear() would transpose b first.
at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu()) return kernels::linear(a, b.t());
  return kernels::gemm::product({a}, {b}, {}, kernels::ComputeScope::current());
}

}  // namespace

// Sums have two terms without factors of their own: a sum with a factor may be rounded once or
// twice, by where in a loop of vectors it stands.
at::Tensor orthogonalised(const at::Tensor& matrix, kernels::Compute compute, int64_t iterations) {
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope scope(compute);
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = normalised((is_tall ? matrix.t() : matrix).contiguous());
  for (int64_t i = 0; i < iterations; ++i) {
    at::Tensor squares = kernels::linear(x, x);
    at::Tensor polynomial = product(squares, squares);
    polynomial.mul_(kQuintic).add_(squares.mul_(kCubic));
    const at::Tensor higher = product(polynomial, x);
    x.mul_(kLinear).add_(higher);
  }
  return is_tall ? x.t() : x;
}

void scale_by_norm(at::Tensor values, const at::Tensor& whole, double norm) {
  const at::NoGradGuard no_grad;
  if (whole.is_cpu()) {
    values.mul_(norm / norm_on_cpu(whole));
  } else {
    values.mul_(whole.norm().clamp_min(kLeastNorm).reciprocal_().mul_(norm));
  }
}

}  // namespace stretto::optim
