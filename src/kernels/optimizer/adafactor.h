#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "kernels/optimizer/adafactor_plan.h"

namespace stretto::kernels {

namespace cuda {
class AdafactorTable;
}

/// Numbers of one Adafactor step; see optim/adafactor.h.
struct AdafactorStep {
  double grad_scale, lr;
  int64_t number;  ///< 1 for the first update
};

/// Adafactor on all tensors of an arena. Each takes lr * lr_scale and its own weight_decay, and
/// keeps moving means of squared gradients along the rows and columns of its matrices; a vector
/// keeps the full second moment as its columns' and no rows'.
///
/// fp32 on a CPU goes from tensor to tensor, reads the gradient three times, from all threads, and
/// gives equal bits for any number of them. fp32 on CUDA is six launches whatever the number of
/// tensors, without a word back to the host, and equal bits from run to run. All else is plain ATen
/// operators.
class AdafactorTensors {
 public:
  explicit AdafactorTensors(std::vector<AdafactorTensor> tensors);

  /// Lengths of the buffers of moments: where the last ones end.
  int64_t num_row_moments() const;
  int64_t num_column_moments() const;

  /// One step, in place, of flat, contiguous buffers on one device: params and grads of one length,
  /// rows and columns with the moments. A TORCH_CHECK refuses buffers that the tensors do not fit.
  void step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows, at::Tensor& columns,
            const AdafactorStep& step);

 private:
  void check(const at::Tensor& params, const at::Tensor& grads, const at::Tensor& rows,
             const at::Tensor& columns) const;

  std::vector<AdafactorTensor> tensors_;
  std::shared_ptr<const cuda::AdafactorTable> table_;  // made by the first step on a GPU
};

namespace reference {

/// The same in plain ATen operators, for any dtype and device.
void adafactor_step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows,
                    at::Tensor& columns, const std::vector<AdafactorTensor>& tensors,
                    const AdafactorStep& step);

}  // namespace reference
}  // namespace stretto::kernels
