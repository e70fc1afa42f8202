#pragma once

#include "kernels/kernels.h"
#include "kernels/rounding.h"

/// Products of fp32 tensors in the arithmetic of a GPU's tensor cores, by libtorch: operands are
/// cast to the half type and results back to fp32 (or TF32 is allowed), in backward too. Plain
/// ATen, so that it runs on a CPU for tests; slow there.
namespace stretto::kernels::cast {

/// While it lives, and if `wanted`, fp32 products on a GPU may use TF32.
class Tf32Guard {
 public:
  explicit Tf32Guard(bool wanted);
  ~Tf32Guard();
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  bool before_, changed_;
};

/// As kernels::linear; `compute` is not kFp32. x may be in its half type already.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Compute compute, Storage storage = Storage::kFp32);

/// `attend` (an operator that takes half types) of operands in the half type of `compute`.
template <class Attend, class... Operands>
at::Tensor in_half(Compute compute, const Attend& attend, const Operands&... operands) {
  return attend(operands.to(half_type(compute))...).to(at::kFloat);
}

}  // namespace stretto::kernels::cast
