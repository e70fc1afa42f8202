#pragma once

#include "kernels/recurrent/recurrent.h"

/// A recurrent layer that attends while it runs: the lowest layer of a decoder with attention and
/// input feeding. The terms are those of recurrent/recurrent.h.
///
/// Shape letters: N tokens and B sequences of the decoder, S tokens of the memory (the encoder's
/// rows), H units, A width of queries and keys, M width of memory values and contexts.
namespace stretto::kernels {

/// How alike a query q and a key k are.
enum class Score : uint8_t {
  kAdditive,        ///< v . tanh(q + k) (Bahdanau et al. 2015, arXiv:1409.0473)
  kNormedAdditive,  ///< g v / |v| . tanh(q + k), as GNMT has it (Wu et al. 2016, arXiv:1609.08144)
  kDot,             ///< q . k (Luong et al. 2015, arXiv:1508.04025)
  kScaledDot,       ///< g q . k with a learned g
};

struct AttentiveWeights {
  RecurrentWeights recurrent;
  // The weights of context and query may stand for codes as recurrent.hidden may, in AttentiveStep.
  at::Tensor context;     ///< [G * H, M]: of the context of the step before
  at::Tensor query;       ///< [A, H]; undefined: the query is h, and A = H
  at::Tensor query_bias;  ///< [A] or undefined: the b of v . tanh(q + k + b). With `query` only
  at::Tensor score;       ///< v [A] of the additive forms
  at::Tensor gain;        ///< g, one number, of kNormedAdditive and kScaledDot
  /// Additive forms: U [A, 2 * K], K odd, or undefined. Location-sensitive attention (Chorowski et
  /// al. 2015, arXiv:1506.07503): the key of row s is k_s + U w, where w are the attention weights
  /// of the K rows around s, at the step before and then summed over all steps before: PyTorch's
  /// Conv1d from two channels, [A, 2, K]. There is none at a sequence's first step.
  at::Tensor location = {};
};

/// What is attended to: rows of each sequence's memory, projected outside.
struct Memory {
  at::Tensor keys;    ///< [S, A]
  at::Tensor values;  ///< [S, M]
  Offsets offsets;    ///< as many sequences as the decoder's; one without rows gives zeroes
};

struct Attentive {
  Recurrent recurrent;  ///< forward only: `reverse` is refused
  Score score = Score::kAdditive;
  bool wants_weights = false;
  bool weights_learn = false;  ///< the weights that are wanted have a gradient, for a loss of them
};

/// `context` [B, M], undefined: zeroes.
struct AttentiveState {
  at::Tensor h, c, context;
};

struct AttentiveOutput {
  at::Tensor h;        ///< [N, H]
  at::Tensor context;  ///< [N, M]
  /// If wanted, of each sequence its block [T, Ts] of attention weights, flattened and joined as in
  /// cross_attention_weights. No gradient unless Attentive::weights_learn.
  at::Tensor weights;
};

/// At each step, with x = x_gates [N, G * H] of the input alone:
///
///     gates   = x + W h + W_context context      (a GRU's context belongs to its input)
///     h'      = cell(gates), q = W_query h' + b
///     context'= sum over the memory's rows of softmax(score(q, keys)) values
///
/// Kept for backward besides what recurrent() keeps: q [N, A], and the attention weights; with
/// `location` also their sums. What `location` adds to the keys is worked out again in backward,
/// and is not rounded in half precision. On a GPU such a layer is the plain form, a step at a time.
AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options);

}  // namespace stretto::kernels
