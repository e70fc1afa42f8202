#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/optimizer/step_numbers.h"

/// One pass each over flat fp32 buffers of an arena: the update rules of `optim`.
///
/// All buffers are contiguous, of equal length and on one device; `runs` are disjoint and name the
/// elements to step, the others stay. fp32 on a CPU calls a loop of `kernels/cpu` from all threads,
/// on CUDA there is one launch whatever the number of runs; any other dtype takes a plain ATen
/// reference (`reference.h`). Equal bits for any number of threads. A TORCH_CHECK refuses
/// buffers that do not fit.
///
/// Letters: p parameter, g gradient.
namespace stretto::kernels {

/// g' = grad_scale g + coupled_decay p
/// m = beta1 m + (1 - beta1) g'        v = beta2 v + (1 - beta2) g'^2
/// p = shrink p - step_size m / (inverse_root_correction sqrt(v) + epsilon)
void adam_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, std::span<const Run<AdamScalars>> runs);

/// d = grad g + decay p,   u = carry u + gain d,   p = p - (ahead d + look u)
///
/// SGD with momentum in both forms, Nesterov, LARS, LARC and NovoGrad are choices of these numbers.
void momentum_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& velocity,
                   std::span<const Run<MomentumScalars>> runs);

/// d = grad g + decay p,   sum = sum + d^2,   p = p - rate d / (sqrt(sum) + epsilon)
void adagrad_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum,
                  std::span<const Run<AdagradScalars>> runs);

/// d = grad g + decay p
/// s = inverse_rate_before sqrt(accumulator + sum),   sum = sum + d^2
/// S = inverse_rate sqrt(accumulator + sum),          linear = linear + d - (S - s) p
/// p = 0 where |linear| <= l1, else -(linear - sign(linear) l1) / (S + l2)
void ftrl_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum, at::Tensor& linear,
               std::span<const Run<FtrlScalars>> runs);

/// d = grad g + decay p,   v = alpha v + (1 - alpha) d^2,
/// u = momentum u + d / (sqrt(v) + epsilon),   p = p - rate u
void rmsprop_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& square_avg,
                  at::Tensor& velocity, std::span<const Run<RmspropScalars>> runs);

/// First pass of LAMB: m and v as Adam has them with g' = grad g, and for each run the sums of
/// squares of p and of r = inverse_correction m / (inverse_root_correction sqrt(v) + epsilon) +
/// decay p.
std::vector<SquareSums> lamb_moments(const at::Tensor& params, const at::Tensor& grads,
                                     at::Tensor& exp_avg, at::Tensor& exp_avg_sq,
                                     std::span<const Run<LambScalars>> runs);
/// Second pass of LAMB: p = p - rate r.
void lamb_apply(at::Tensor& params, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                std::span<const Run<LambScalars>> runs);

/// The segmented reduction of layer-wise optimizers: for each run the sums of squares of p and of
/// grad g + decay p, in double. These runs may overlap.
std::vector<SquareSums> squares_of_runs(const at::Tensor& params, const at::Tensor& grads,
                                        std::span<const Run<NormScalars>> runs);

}  // namespace stretto::kernels
