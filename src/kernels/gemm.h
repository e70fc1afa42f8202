#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// Matrix products of fp32 matrices on the CPU by our own kernel (kernels/cpu/product.inc), with
/// threads. Results do not depend on the number of threads.
namespace stretto::kernels::gemm {

/// A matrix or, with `transposed`, its transpose; the tensor is dense, rows of any distance.
struct Operand {
  at::Tensor matrix;
  bool transposed = false;

  int64_t rows() const { return matrix.size(transposed ? 1 : 0); }
  int64_t columns() const { return matrix.size(transposed ? 0 : 1); }
};

/// The right factor [K, N] of products, laid out for the kernel; worth keeping when used twice.
class Packed {
 public:
  explicit Packed(const Operand& b);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  const float* block(int64_t depth_begin, int64_t column) const;

 private:
  int64_t depth_, columns_, padded_;
  at::Tensor values_;
};

/// out [M, N] (+)= a [M, K] b [K, N] + bias [N] (may be undefined).
void multiply(const Operand& a, const Packed& b, const at::Tensor& bias, bool add, at::Tensor& out);

/// Whether our kernel is taken for a product of this size: a rule on the processor and the size
/// alone, so that a resumed run takes the same path. README.md has the figures behind it.
bool is_better(int64_t rows, int64_t depth, int64_t columns);

/// x [N, D] -> the sums of its columns [D], in the order of the rows.
at::Tensor column_sums(const at::Tensor& x);

}  // namespace stretto::kernels::gemm
