#pragma once

#include "kernels/optimizer/steps.h"

/// The steps of kernels/optimizer/steps.h on a GPU: contiguous fp32 buffers on one device, runs
/// already checked. The runs travel to the device as one table, and each step is one launch (the
/// sums: one launch and one copy back, which waits for the GPU).
namespace stretto::kernels::cuda {

/// Is this fp32 on a GPU, in a build with CUDA kernels?
bool takes_steps(const at::Tensor& flat);

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

}  // namespace stretto::kernels::cuda
