#pragma once

#include "kernels/convolution/convolution.h"

/// Autograd nodes of convolution.h for fp32 tensors on the CPU; see kernels/fused.h.
namespace stretto::kernels::fused {

at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window);
at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window);

/// Windows of x weighed by normalised `weights` [M, H * K], or [1, H * K] for all rows, after
/// DropConnect.
at::Tensor weigh(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                 const Dropout& drop_connect, const TimeWindow& window);

/// The same of rows that `lines` [M, K] names, weights [M or 1, H * K] as they are; no gradient.
at::Tensor weigh_lines(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                       const at::Tensor& lines);

at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain);
at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options);
at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options);

}  // namespace stretto::kernels::fused
