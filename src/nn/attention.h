#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/packed_rows.h"
#include "nn/relative_keys.h"
#include "nn/rotary_options.h"

/// Multi-head attention (Vaswani et al. 2017, section 3.2) on packed rows: no sequence sees another
/// one, and padding does not exist. N tokens, D model width, W head width, Q = W * num_heads the
/// width of queries, which is D unless head_dim says another one, E = W * num_kv_heads the width of
/// keys and of values. Queries, keys and values are one matrix product; each part starts
/// Xavier-uniform with gain 1/sqrt(2), as fairseq does.
///
/// A module has its projections apart from the attention between them, because decoding puts a
/// cache in that place: out(attend(project(x))).
namespace stretto::nn {

struct AttentionOptions {
  int64_t d_model = 512;
  int64_t num_heads = 8;
  bool rotary = false;  ///< turn queries and keys by their position (self-attention only)
  /// Heads of keys and values, each shared by num_heads / num_kv_heads queries (multi-query and
  /// grouped-query attention, arXiv:1911.02150 and arXiv:2305.13245); 0 = num_heads.
  int64_t num_kv_heads = 0;
  /// The largest distance in nn/relative_keys.h (self-attention only); 0 = keys have no vectors of
  /// distances.
  int64_t max_distance = 0;
  bool causal = false;   ///< of these vectors: none for keys behind a query
  int64_t head_dim = 0;  ///< W; 0 = D / num_heads
  bool qkv_bias = true, out_bias = true;
  /// Root mean square norm over each head of queries and of keys, with gains that all heads of
  /// either share, before positions turn them (self-attention only; Qwen3, arXiv:2505.09388).
  bool qk_norm = false;
  double norm_epsilon = 1e-6;            ///< of qk_norm
  RotaryOptions rope = {};               ///< of rotary
  kernels::AttentionLimits limits = {};  ///< of causal self-attention

  int64_t kv_heads() const { return num_kv_heads == 0 ? num_heads : num_kv_heads; }
  int64_t head_width() const { return head_dim == 0 ? d_model / num_heads : head_dim; }  ///< W
  int64_t q_width() const { return head_width() * num_heads; }                           ///< Q
  int64_t kv_width() const { return head_width() * kv_heads(); }                         ///< E
};

class SelfAttentionImpl : public torch::nn::Module {
 public:
  SelfAttentionImpl(const Init& init, const AttentionOptions& options);

  /// x [N, D], positions int64 [N] -> rows (q, k, v) [N, Q + 2E], normed and rotated as options
  /// say.
  at::Tensor project(const at::Tensor& x, const at::Tensor& positions) const;
  /// The three parts of such rows: [N, Q], [N, E], [N, E].
  std::vector<at::Tensor> split(const at::Tensor& qkv) const;

  /// What distances add to the scores of rows that begin with queries [N, Q ...]: by its own
  /// vectors of distances, or `bias` where it has none.
  kernels::DistanceBias bias_of(const at::Tensor& rows, const kernels::DistanceBias& bias) const;

  /// softmax(q k^T / sqrt(W) + bias) v, all of forward() but its last map; [N, D] -> [N, Q].
  at::Tensor attend(const at::Tensor& x, const PackedRows& rows, bool causal,
                    const kernels::Dropout& dropout, const kernels::DistanceBias& bias = {}) const;

  /// The same of rows that are projected already, project() -> [N, Q]: a cache keeps them too.
  at::Tensor attend_projected(const at::Tensor& projected, const PackedRows& rows, bool causal,
                              const kernels::Dropout& dropout,
                              const kernels::DistanceBias& bias = {}) const;

  /// out(attend(x)); x [N, D] -> [N, D].
  at::Tensor forward(const at::Tensor& x, const PackedRows& rows, bool causal,
                     const kernels::Dropout& dropout, const kernels::DistanceBias& bias = {}) const;

  AttentionOptions options;
  Linear qkv{nullptr}, out{nullptr};
  RelativeKeys relative_keys{nullptr};       ///< null: max_distance = 0
  RmsNorm q_norm{nullptr}, k_norm{nullptr};  ///< of [W] columns; null without qk_norm

 private:
  at::Tensor with_normed_heads(const at::Tensor& rows) const;

  kernels::RotaryAngles angles_;
};
TORCH_MODULE(SelfAttention);

class CrossAttentionImpl : public torch::nn::Module {
 public:
  CrossAttentionImpl(const Init& init, const AttentionOptions& options);

  /// Sequence i of x [Nt, D] looks at sequence i of memory [Ns, D] -> [Nt, D].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory,
                     const kernels::CrossAttention& attention) const;

  Linear q{nullptr}, kv{nullptr}, out{nullptr};
};
TORCH_MODULE(CrossAttention);

}  // namespace stretto::nn
