#pragma once

#include <functional>

#include "kernels/kernels.h"

/// Attention of packed rows by way of rectangles [batch, heads, queries, keys], in plain ATen: any
/// device and dtype, differentiable, a fixed number of operations however many sequences there are.
/// It computes on padding, so it serves where no variable-length kernel can: on a GPU when
/// attention weights are dropped. Scores and softmax are fp32 or wider.
namespace stretto::kernels::cuda {

struct PaddedAttention {
  Offsets query_offsets, key_offsets;
  int64_t num_heads = 1;
  bool causal = false;
  Dropout dropout;         ///< row keys of the query rows
  DistanceBias bias = {};  ///< of self-attention
};

/// Heads [N, G, W] of keys or values, each as often as queries share it: [N, H, W]. The gradient of
/// a head is a sum over those that share it.
at::Tensor shared_by(const at::Tensor& heads, int64_t num_heads);

/// Drops attention weights: weights [batch * heads * queries, keys], where row r belongs to head
/// (r / queries) % heads; row_keys int64, one a row.
using DropWeights = std::function<at::Tensor(const at::Tensor& weights, const at::Tensor& row_keys,
                                             int64_t heads, int64_t queries)>;

/// q [Nq, D], k and v [Nk, D] -> [Nq, D]; `drop` is called when dropout is active.
at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options, const DropWeights& drop);

}  // namespace stretto::kernels::cuda
