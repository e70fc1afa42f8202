#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/compute.h"
#include "kernels/gemm/combination.h"

/// Matrix products of fp32 matrices on the CPU by our own kernel (kernels/gemm/product.inc), with
/// threads, in fp32 or with operands and result rounded to a half type (compute.h). Results do not
/// depend on the number of threads.
namespace stretto::kernels::gemm {

/// A matrix or, with `transposed`, its transpose; the tensor is dense, rows of any distance.
struct Operand {
  at::Tensor matrix;
  bool transposed = false;

  int64_t rows() const { return matrix.size(transposed ? 1 : 0); }
  int64_t columns() const { return matrix.size(transposed ? 0 : 1); }
};

/// Rows that are put together from lines of a dense matrix [L, W] while a product copies them: row
/// i is the lines table[i, 0], table[i, 1], … side by side, an entry below 0 a line of zeroes.
struct Gathered {
  at::Tensor matrix;
  at::Tensor table;  ///< int32 [rows, parts], dense; entries below L

  int64_t rows() const { return table.size(0); }
  int64_t parts() const { return table.size(1); }
  int64_t width() const { return matrix.size(1); }
};

/// Where a packed factor lies.
enum class Pages : uint8_t {
  kAny,
  kLarge,  ///< kernels/gemm/large_pages.h: worth it for what many products read
};

/// The right factor [K, N] of products, rounded as `compute` says and laid out for the kernel;
/// worth keeping when used twice. With kBf16 it holds pairs of bfloat16 where the processor
/// multiplies those.
class Packed {
 public:
  explicit Packed(const Operand& b, Compute compute = Compute::kFp32, Pages pages = Pages::kAny);

  /// In fp32, parts [W, N] one below the other: part p is the sum over its terms of factor times
  /// blocks[entry]. blocks [B, W, N], one of whose last two dimensions is dense.
  static Packed of_blocks(const at::Tensor& blocks, const std::vector<Combination>& parts);

  /// In fp32, [M, N]: row i is the sum over terms of factor times line table[i, entry] of a dense
  /// matrix [L, N], an entry below 0 a line of zeroes. table int32 [M, entries], dense.
  static Packed of_lines(const at::Tensor& matrix, const at::Tensor& table,
                         const Combination& combination);

  /// For one product with `rows` rows: where laying b out costs more than it gains, it is b as it
  /// lies. b must then stay as it is meanwhile.
  static Packed for_one_product(const Operand& b, int64_t rows, Compute compute);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  /// From one step of depth to the next of a factor as it lies; 0: it is laid out.
  int64_t step() const { return step_; }
  Compute compute() const { return compute_; }
  bool holds_pairs() const { return pairs_; }
  const float* block(int64_t depth_begin, int64_t column) const;

 private:
  Packed(int64_t depth, int64_t columns, Compute compute, const at::TensorOptions& options,
         Pages pages = Pages::kAny);
  /// As it lies.
  Packed(const Operand& b, Compute compute, int64_t step);
  /// fill(item, first): a panel from depth `first` on, all but where its numbers come from.
  template <class Fill>
  void for_each_panel(const Fill& fill);
  /// Numbers, or words of two, that a column has up to depth `depth`.
  int64_t words(int64_t depth) const { return pairs_ ? (depth + 1) / 2 : depth; }

  int64_t depth_, columns_, padded_;
  Compute compute_;
  bool pairs_;
  at::Tensor values_;
  int64_t step_ = 0;
};

/// out [M, N] (+)= a [M, K] b [K, N] + bias [N] (may be undefined), in the arithmetic of b. In half
/// precision out is rounded unless it is added to: whoever adds products rounds their sum.
void multiply(const Operand& a, const Packed& b, const at::Tensor& bias, bool add, at::Tensor& out);

/// The same with gathered rows: a is [M, parts * W].
void multiply_gathered(const Gathered& a, const Packed& b, const at::Tensor& bias, bool add,
                       at::Tensor& out);

/// out [W, parts, N] = the transposes of the parts of a, each times b [M, N]: number (w, p, n) is
/// the sum over rows i of a(i, p W + w) b(i, n), in the order of i. Rounded in half precision.
void multiply_transposed(const Gathered& a, const Packed& b, at::Tensor& out);

/// Whether our kernel is taken for a product of this size: a rule on the processor and the size
/// alone, so that a resumed run takes the same path. README.md has the figures behind it.
bool is_taken(int64_t rows, int64_t depth, int64_t columns);

/// The same for gathered rows, of any size: libtorch's product would want a copy of them first.
bool takes_gathered();

/// From now on our kernel is taken for every size (or by the rule again): libtorch's product is
/// faster for few rows and on some processors, but its bits depend on the number of threads.
/// @return what held before
bool take_always(bool always);
bool is_taken_always();

/// Our kernel for every size as long as it lives.
class OwnProducts {
 public:
  OwnProducts() : before_(take_always(true)) {}
  ~OwnProducts() { take_always(before_); }
  OwnProducts(const OwnProducts&) = delete;
  OwnProducts& operator=(const OwnProducts&) = delete;

 private:
  bool before_;
};

/// a b + bias [N] (may be undefined) by our product or libtorch's, rounded in half precision.
at::Tensor product(const Operand& a, const Operand& b, const at::Tensor& bias, Compute compute);

/// out [M, N] = a b, or out += a b with `add`, by libtorch: operands rounded, the result not.
void multiply_by_libtorch(const Operand& a, const Operand& b, bool add, Compute compute,
                          at::Tensor& out);

/// x [N, D] -> the sums of its columns [D], in the order of the rows.
at::Tensor column_sums(const at::Tensor& x);

}  // namespace stretto::kernels::gemm
