#pragma once

#include "kernels/kernels.h"

/// Inside of kernels::linear_r_drop: its losses and, in forward, their slopes. Both forms take a
/// block of rows of both passes at a time, so that [N, V] logits never exist; `bias` may be
/// undefined.
namespace stretto::kernels::r_drop {

/// What N tokens of two passes cost.
struct Losses {
  at::Tensor loss, nll, kl;  ///< scalars
  /// [2N, D] and [V, D], where gradients are wanted, before the scale that the loss comes back
  /// with; under kFp16 times slope_scale().
  at::Tensor dx, dweight;
  at::Tensor dbias;  ///< [V], where there is a bias; never times slope_scale()
};

/// Under kFp16 slopes of logits are rounded as multiples of this of themselves. They lie in
/// [-1/2, 1/2] without R-Drop, and grow with alpha and with the distance of the two passes: up to
/// log-probabilities that are 40 apart they stay finite.
float slope_scale(const RDrop& options);

/// Plain ATen: any dtype, any device.
Losses of_any_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                   const RDrop& options, const at::Tensor& bias, bool want_gradient);

/// fp32 on a CPU, by cpu::Table::pair_loss_row.
Losses of_fp32_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                    const RDrop& options, const at::Tensor& bias, bool want_gradient);

/// One of the two as an autograd node: the loss is linear in what comes back, so its gradients are
/// made in forward.
CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias);

}  // namespace stretto::kernels::r_drop
