#pragma once

#include <ATen/core/Tensor.h>

namespace stretto::kernels {

/// Numbers of one Adafactor step; see optim/adafactor.h.
struct AdafactorStep {
  double grad_scale, lr, weight_decay;
  int64_t number;  ///< 1 for the first update
};

/// One step of one tensor, in place. `param` and `grad` are contiguous of one shape. For a matrix
/// [.., R, C] `rows` is [.., R] and `columns` [.., C]: moving means of squared gradients along the
/// other of the last two dimensions. For a vector `rows` is empty and `columns` has its shape: the
/// full second moment.
///
/// fp32 on a CPU reads the gradient three times, from all threads, and gives equal bits for any
/// number of them; all else is plain ATen operators.
void adafactor_step(at::Tensor param, const at::Tensor& grad, at::Tensor rows, at::Tensor columns,
                    const AdafactorStep& step);

namespace reference {
void adafactor_step(at::Tensor param, const at::Tensor& grad, at::Tensor rows, at::Tensor columns,
                    const AdafactorStep& step);
}

}  // namespace stretto::kernels
