#pragma once

#include "kernels/optimizer/steps.h"

/// Plain ATen forms of steps.h, for any floating dtype and device: what the loops and
/// CUDA kernels are tested against.
namespace stretto::kernels::reference {

void adam_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, std::span<const Run<AdamScalars>> runs);
void momentum_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& velocity,
                   std::span<const Run<MomentumScalars>> runs);
void adagrad_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum,
                  std::span<const Run<AdagradScalars>> runs);
void ftrl_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum, at::Tensor& linear,
               std::span<const Run<FtrlScalars>> runs);
void rmsprop_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& square_avg,
                  at::Tensor& velocity, std::span<const Run<RmspropScalars>> runs);
std::vector<SquareSums> lamb_moments(const at::Tensor& params, const at::Tensor& grads,
                                     at::Tensor& exp_avg, at::Tensor& exp_avg_sq,
                                     std::span<const Run<LambScalars>> runs);
void lamb_apply(at::Tensor& params, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                std::span<const Run<LambScalars>> runs);
std::vector<SquareSums> squares_of_runs(const at::Tensor& params, const at::Tensor& grads,
                                        std::span<const Run<NormScalars>> runs);

}  // namespace stretto::kernels::reference
