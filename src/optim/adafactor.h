#pragma once

#include "kernels/optimizer/adafactor.h"
#include "optim/groups.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Adafactor (Shazeer & Stern 2018, arXiv:1804.04235), as torch.optim.Adafactor has it: second
/// moments of a matrix as a column times a row, so that they need R + C numbers instead of R C; no
/// first moment. g is gradient * grad_scale, t the update, rms the root mean square over a tensor.
///
///     k = t^-0.8
///     row = (1 - k) row + k mean of g^2 over columns,  column likewise over rows
///     v = row column / mean(row)            (a vector keeps v itself: v = (1 - k) v + k g^2)
///     w = g / sqrt(v),   d = w / max(1, rms(w))
///     p = p (1 - lr weight_decay)
///     p = p - min(lr, 1 / sqrt(t)) max(0.001, rms(p)) d
///
/// One call of kernels/optimizer/adafactor.h steps all tensors. Tensors of more than two dimensions
/// are matrices of their last two. The state is not cut: the constructor refuses a slice that is
/// not the whole arena with Error(kUsage).
class Adafactor : public Optimizer {
 public:
  Adafactor(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;
  std::vector<StateTensor> state() override;

 private:
  kernels::AdafactorTensors tensors_;
  torch::Tensor rows_, columns_;  // one tensor's after another's
};

}  // namespace stretto::optim
