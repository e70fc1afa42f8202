#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace stretto::kernels {

/// Is told the rows x [N, I] and the weight [O, I] of a product.
using LinearInputs = std::function<void(const at::Tensor& x, const at::Tensor& weight)>;

/// For as long as it lives, every `linear` of fp32 without gradient that this thread computes on a
/// CPU is told before it is computed, and so is the projection of linear_cross_entropy: what
/// calibration asks of a model (compress/quantise_inputs.h). One at a time on a thread: a second
/// throws c10::Error.
class LinearInputsScope {
 public:
  explicit LinearInputsScope(LinearInputs told);
  ~LinearInputsScope();
  LinearInputsScope(const LinearInputsScope&) = delete;
  LinearInputsScope& operator=(const LinearInputsScope&) = delete;

 private:
  LinearInputs told_;
};

/// Costs one load of a pointer while nobody is told.
void tell_linear_inputs(const at::Tensor& x, const at::Tensor& weight);

}  // namespace stretto::kernels
