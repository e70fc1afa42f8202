#pragma once

#include <functional>

#include "kernels/kernels.h"

/// Attention of packed rows by way of rectangles [heads, batch, queries, keys], in plain ATen: any
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

/// The scores of rectangles, and what their weights depend on.
struct PaddedScores {
  at::Tensor scores;    ///< [H, B, Tq, Tk], dense; wider than q where there is a bias
  at::ScalarType type;  ///< of q: weights are rounded to it before they are dropped
  at::Tensor query_starts, query_lengths, key_lengths;  ///< int64 [B]
  bool causal;
  Dropout dropout;  ///< row keys of the packed rows of queries
};

/// From scores to weights [H, B, Tq, Tk], dropped where dropout is active. Exactly 0 are those of
/// keys that a query does not see, and all of a query behind the end of its sequence, also where
/// scores there are not finite; gradients likewise.
using WeightsOf = std::function<at::Tensor(const PaddedScores& of)>;

/// Drops attention weights: weights [heads * queries, keys], where row r belongs to head
/// r / queries % heads, `queries` being those of all sequences; row_keys int64, one a row.
using DropWeights = std::function<at::Tensor(const at::Tensor& weights, const at::Tensor& row_keys,
                                             int64_t heads, int64_t queries)>;

/// WeightsOf in plain ATen; `drop` is called when dropout is active.
at::Tensor plain_weights(const PaddedScores& of, const DropWeights& drop);

/// q [Nq, D], k and v [Nk, D] -> [Nq, D]. Without `weights_of`: plain weights, no dropout.
///
/// What it knows of a batch's sequences is kept for the next layers, as long as they pass the same
/// `Offsets::values`: the same tensor, not changed in place by ATen since.
at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options, const WeightsOf& weights_of);

/// The same with weights by the kernels of a GPU; in CUDA builds (cuda_padded.cpp).
at::Tensor padded_attention_on_gpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const PaddedAttention& options);

}  // namespace stretto::kernels::cuda
