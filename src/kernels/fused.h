#pragma once

#include "kernels/kernels.h"

/// Autograd nodes around the kernels of kernels/cpu: fp32 tensors on the CPU, shapes and ranges
/// already checked by kernels.cpp. Masks of dropout are computed again in backward instead of being
/// kept.
namespace stretto::kernels::fused {

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout);
at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout);
at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
at::Tensor bias_gelu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
at::Tensor bias_gelu_tanh_dropout(const at::Tensor& x, const at::Tensor& bias,
                                  const Dropout& dropout);
at::Tensor bias_silu_dropout(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);
at::Tensor bias_relu_squared_dropout(const at::Tensor& x, const at::Tensor& bias,
                                     const Dropout& dropout);
at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);
at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon);
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position);
at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles = {});
at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options);
at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options);
at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options);
at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias = {}, const at::Tensor& first = {},
                                 double softcap = 0);

/// Blocks of rows keep logits small, and the gradients are computed in forward (the loss is linear
/// in what comes back) when one is asked for.
CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias = {}, double softcap = 0);

double sum_of_squares(const at::Tensor& flat);
std::vector<double> sum_of_squares_blocks(const at::Tensor& flat);

}  // namespace stretto::kernels::fused
