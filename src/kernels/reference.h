#pragma once

#include "kernels/kernels.h"

/// The operators of kernels.h in plain ATen: any dtype and device, differentiable because every
/// step is an ordinary autograd operation. They define what the fast kernels must compute, and
/// serve where no fast kernel exists (fp64, devices without one).
///
/// The dropout rule, for all implementations: element j of row n uses the 16-bit lane j % 8 of
/// Philox::at(key, row_keys[n], j / 8) (word (j % 8) / 2, low half first) and is kept when
/// lane >= round(p * 65536); kept elements are multiplied by 65536 / (65536 - threshold), so that
/// the expectation is exact for the rounded probability. For an attention weight the row is its
/// query and j = head * 2^20 + position of the key in its sequence.
namespace stretto::kernels::reference {

/// Factors of dropout, fp64 [rows.size(0), count], for elements first .. first + count of each row.
at::Tensor dropout_factors(const Dropout& dropout, const at::Tensor& row_keys, int64_t first,
                           int64_t count);

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout);
at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout);
at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout);
at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);
at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon = 1e-6);
/// What `bias` adds to the scores of one sequence: [H, queries, keys]. One of queries must be that
/// of the sequence alone.
at::Tensor bias_of_scores(const DistanceBias& bias, int64_t queries, int64_t keys);
/// What it adds to the scores of steps 0 .. t in decoding: [H, t + 1], of queries [L, H, t + 1].
at::Tensor bias_of_step(const DistanceBias& bias, int64_t t);

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options);
at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options);
at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options);
at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles = {});
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position);
CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias = {}, double softcap = 0);
/// With all [2N, V] logits at once.
CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias = {});
at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias = {}, const at::Tensor& first = {},
                                 double softcap = 0);
double sum_of_squares(const at::Tensor& flat);
std::vector<double> sum_of_squares_blocks(const at::Tensor& flat);

}  // namespace stretto::kernels::reference
