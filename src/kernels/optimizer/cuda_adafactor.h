#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/optimizer/adafactor.h"
#include "kernels/optimizer/adafactor_plan.h"

namespace stretto::kernels::cuda {

/// A plan on one GPU, with the room that its kernels need: made once, then each step hands over six
/// launches, copies nothing and waits for nothing.
class AdafactorTable {
 public:
  AdafactorTable(const AdafactorPlan& plan, at::Device device);

  at::Device device() const { return partials_.device(); }

  /// Contiguous fp32 buffers on device(), already checked.
  void step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows, at::Tensor& columns,
            const AdafactorStep& step) const;

 private:
  at::Tensor tiles_, folds_, share_chunks_, blocks_, tensors_;  // the lists of the plan, as bytes
  at::Tensor partials_, shares_, sums_, rates_;
};

}  // namespace stretto::kernels::cuda
