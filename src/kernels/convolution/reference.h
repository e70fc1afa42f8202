#pragma once

#include "kernels/convolution/convolution.h"

/// The operators of convolution.h in plain ATen, for any dtype and device; see kernels/reference.h.
namespace stretto::kernels::reference {

/// The row of x that each tap of each output row sees: int64 [M, K] on the device of the offsets,
/// `rows` (the number of rows of x) where there is none.
at::Tensor seen_rows(const TimeWindow& window, int64_t rows);

/// The windows themselves [M, K, C], zeroes where there is no row. Deterministic in backward on a
/// GPU too.
at::Tensor windows(const at::Tensor& x, const TimeWindow& window);

/// Rows of windows [M, K, C] weighed by [M or 1, H, K] -> [M, C].
at::Tensor weigh(const at::Tensor& windows, const at::Tensor& weights);

/// Weights [M or 1, H, K] after DropConnect: [M, H, K].
at::Tensor drop_weights(const at::Tensor& weights, const Dropout& drop_connect);

at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window);
at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window);
at::Tensor light_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const Dropout& drop_connect, const TimeWindow& window);
at::Tensor dynamic_convolution(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                               const Dropout& drop_connect, const TimeWindow& window);
at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain);
at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options);
at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options);

}  // namespace stretto::kernels::reference
