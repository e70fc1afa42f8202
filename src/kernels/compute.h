#pragma once

#include <cstdint>

/// Arithmetic of the matrix products.
namespace stretto::kernels {

/// What the operands of a product are rounded to. Sums are always fp32.
enum class Compute : uint8_t {
  kFp32,
  kTf32,  ///< CUDA only; on a CPU the same as kFp32
  kBf16,  ///< operands and result rounded to bfloat16 (to nearest, ties to even)
  kFp16,  ///< operands and result rounded to binary16; too large becomes infinite
};

/// For as long as it lives, products of this thread (`linear`, the projections inside
/// `linear_cross_entropy`, attention) are computed as stated, and so are the backward passes of
/// what was recorded meanwhile, whenever they run. As NoGradGuard, it nests.
class ComputeScope {
 public:
  explicit ComputeScope(Compute compute);
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;

  static Compute current();

 private:
  Compute before_;
};

/// The rounding rule, whatever the hardware: a value in fp32 becomes the nearest value of the half
/// type, ties to even, and stays in fp32 storage, so masters, activations and gradients keep their
/// type and their place. Rounded are, for kBf16 and kFp16 and fp32 tensors,
///  - both operands of a product (rows, weight, bias; q, k, v; attention weights; what comes back),
///  - its result (the logits too), and the gradients that products give. A product is summed in
///    fp32 and rounded once; what autograd then adds to a gradient buffer it adds in fp32.
/// Never rounded: embeddings, norms, softmax and its scores, losses, residual sums, reductions, and
/// anything in fp64.
///
/// Logits' slopes lie in [-1, 1]; under kFp16 they are rounded as multiples of 2^15 of themselves,
/// so that they do not vanish before `linear_cross_entropy` knows the loss scale; its gradients are
/// rounded at the scale that comes back.
constexpr bool is_half(Compute compute) {
  return compute == Compute::kBf16 || compute == Compute::kFp16;
}

/// Whether kBf16 products are faster than kFp32 ones on this machine's CPU: it multiplies pairs of
/// bfloat16 (AVX512_BF16) and is one whose own matrix product is used. README.md has the figures.
bool has_fast_bf16();

}  // namespace stretto::kernels
