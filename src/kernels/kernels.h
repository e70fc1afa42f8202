#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>
#include <vector>

/// Fused operators with their backward. Every function here is differentiable by autograd, checks
/// its shapes (TORCH_CHECK, a c10::Error), and takes fp32 and fp64 on CPU (fp32, fp16, bf16 on
/// CUDA). On CPU fp32 calls a kernel of `kernels/cpu` chosen by the processor's features at start
/// and gives the same bits for any number of threads (but products that go to libtorch are as
/// libtorch has them); a plain ATen reference of the same name stands in `kernels/reference.h`.
///
/// Shape letters: N tokens of all sequences, D model width, F inner width, H heads, V vocabulary.
namespace stretto::kernels {

/// Where a dropout mask comes from: element j of row n takes the 16-bit lane j % 8 (low half of a
/// word first) of the four words Philox::at(key, row_keys[n], j / 8), and is dropped when the lane
/// is below round(p * 65536); the others are scaled by 65536 / (65536 - round(p * 65536)). For an
/// attention weight the row is its query and j = head * 2^20 + position of the key. The mask is a
/// function of (seed, update, sample, position, site) and therefore equal for any cut of the batch
/// into micro-batches or processes.
struct Dropout {
  double p = 0;              ///< probability of dropping, at most 1 - 1 / 65536; 0 = off
  uint64_t key = 0;          ///< mix of seed, update and site
  at::Tensor row_keys = {};  ///< int64 [N]: mix of sample id and position

  bool active() const { return p > 0; }
};

/// Sequence boundaries of packed rows: int32 [B + 1], on the device of the rows.
struct Offsets {
  at::Tensor values;
  int64_t max_length = 0;
};

/// kGelu is x times the normal distribution function (Hendrycks and Gimpel 2016, arXiv:1606.08415),
/// exact by erf; kGeluTanh is that paper's approximation of it, x / 2 times 1 + tanh(sqrt(2 / pi)
/// (x + 0.044715 x^3)). kSilu is x times the logistic function of x (Elfwing et al. 2017,
/// arXiv:1702.03118; also called swish). kReluSquared is the square of ReLU (So et al. 2021,
/// arXiv:2109.08668).
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kReluSquared };

/// x [N, D] -> [N, D]: zeroes with probability p, scales the rest as above.
at::Tensor dropout(const at::Tensor& x, const Dropout& dropout);

/// dropout(x) + residual, both [N, D], in one pass; in the type of the residual.
at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout);

/// dropout(activation(x + bias)); x [N, F], bias [F].
at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout);

/// dropout(silu(gate) * up); gate_up [N, 2F] holds gate in its first half -> [N, F].
at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);

/// dropout(gelu(gate) * up), gelu exact; as above (Shazeer 2020, arXiv:2002.05202).
at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout);

/// Layer normalisation over the last dimension; x [N, D], weight and bias [D].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon = 1e-5);

/// Root mean square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467) over the last
/// dimension: x / sqrt(mean(x^2) + epsilon) * weight; x [N, D], weight [D]. Epsilon is that of T5
/// and of the first LLaMA. Rows of half types are normalised in fp32 and rounded once.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon = 1e-6);

/// In what type a product leaves its result. In half arithmetic (compute.h) it is rounded to the
/// half type; the CPU then keeps it in fp32 storage all the same.
enum class Storage : uint8_t {
  kFp32,
  /// On a GPU the half type itself, which saves a pass over the rows, for those that take such rows
  /// beside fp32 parameters and residuals: `linear`, attention, dropout_add,
  /// bias_activation_dropout and the gated activations. They compute in fp32 and round what is the
  /// operand of another product, as that product would. Only sums of slopes (gradients of biases)
  /// take rounded ones, where kFp32 has them in fp32.
  kRounded,
};

/// x [N, I] times weight [O, I] transposed plus bias [O] (may be undefined) -> [N, O], by our own
/// product or libtorch's, chosen by processor and shape (gemm::is_taken), never by a measurement.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                  Storage storage = Storage::kFp32);

/// Rows that a product left in a half type (Storage::kRounded) in fp32; others as they are.
at::Tensor widened(const at::Tensor& x);

/// What the distance between a key and its query adds to their score, before softmax:
/// score[h, i, j] += table[h, zero + j - i]. ALiBi (Press et al. 2021, arXiv:2108.12409) and T5
/// (Raffel et al. 2020, arXiv:1910.10683) are tables of this kind; where the table wants a
/// gradient, it gets the sum over all pairs of a distance.
///
/// Each query may have numbers of its own, as with the relative positions of Shaw et al. 2018
/// (arXiv:1803.02155), where they are its products with the vectors of distances. Then
/// score[h, i, j] += table[i, h, clip(zero + j - i)]: the table's ends stand for all distances
/// beyond them, and sequences may have any length.
struct DistanceBias {
  /// [H, distances], or of queries [N, H, distances], on the device of the rows, fp32 where they
  /// are fp32 or half; undefined: nothing is added.
  at::Tensor table = {};
  /// Column of distance 0. In [H, distances] it is at least the longest sequence - 1, and unless
  /// causal, as many columns stand behind it.
  int64_t zero = 0;

  bool active() const { return table.defined(); }
  bool is_of_queries() const { return active() && table.dim() == 3; }
};

/// What keeps attention to earlier tokens small: how far it reaches, and how large its scores grow.
struct AttentionLimits {
  /// Query i sees keys i - window + 1 .. i alone, in causal attention (Beltagy et al. 2020,
  /// arXiv:2004.05150); 0 = all up to i.
  int64_t window = 0;
  /// Scores are bent into (-softcap, softcap): softcap tanh(score / softcap), before softmax (Gemma
  /// 2, arXiv:2408.00118); not beside a bias; 0 = as they are.
  double softcap = 0;

  bool any() const { return window > 0 || softcap > 0; }
};

/// Heads of keys and values may be fewer than heads of queries: each serves num_heads /
/// num_kv_heads of them that stand side by side. One is multi-query attention (Shazeer 2019,
/// arXiv:1911.02150), more are grouped queries (Ainslie et al. 2023, arXiv:2305.13245). With G
/// heads of keys, k and v are G * D / H wide. 0 = num_heads.
struct SelfAttention {
  Offsets offsets;
  int64_t num_heads = 1;
  bool causal = false;
  Dropout dropout;
  int64_t num_kv_heads = 0;
  DistanceBias bias = {};
  AttentionLimits limits = {};

  int64_t kv_heads() const { return num_kv_heads == 0 ? num_heads : num_kv_heads; }
};

/// softmax(Q K^T / sqrt(D / H) + bias) V inside each sequence, never across and never on padding,
/// and within `limits`. qkv [N, 3D], or [N, D + 2 G D / H], rows are (q, k, v) -> [N, D].
at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options);

struct CrossAttention {
  Offsets query_offsets;
  Offsets key_offsets;
  int64_t num_heads = 1;
  Dropout dropout;           ///< row keys of the query rows
  int64_t num_kv_heads = 0;  ///< as of SelfAttention

  int64_t kv_heads() const { return num_kv_heads == 0 ? num_heads : num_kv_heads; }
};

/// q [Nq, D], kv [Nk, 2D] or [Nk, 2 G D / H], rows are (k, v); sequence i of the queries sees
/// sequence i of the keys.
at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options);

/// Mean over heads of the attention weights of cross_attention: one [Tq, Tk] block per sequence,
/// flattened and concatenated. No gradient.
at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options);

/// By which angles rotary positions turn: pair j of a head's W columns at position p by p times
/// frequencies[j]; turned rows are multiplied by `factor`.
struct RotaryAngles {
  at::Tensor frequencies = {};  ///< fp64 [W / 2] on the CPU; undefined: 10000^(-2 j / W)
  double factor = 1;
};

/// Rotary positions (Su et al. 2021, arXiv:2104.09864, half-split form) on the first `num_parts` of
/// the D-wide parts of each row; x [N, parts * D], positions int64 [N] >= 0 -> same shape.
at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles = {});

/// Embedding rows times `scale` plus `positions` rows: out[n] = table[ids[n]] * scale +
/// position[n]. table [V, D], ids int64 [N], position [N, D] or undefined -> [N, D]. The gradient
/// of `table` is dense and summed in token order (deterministic).
at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position);

struct CrossEntropy {
  at::Tensor loss_sum;  ///< scalar, differentiable: label-smoothed cross entropy summed over tokens
  at::Tensor nll_sum;   ///< scalar, no gradient: -log p(target) summed over tokens
  /// fp64 [N]: -log p(target) of each token; undefined where a gradient is wanted, because training
  /// has no use for it.
  at::Tensor token_nll = {};
  /// Scalar, no gradient: distance of two passes summed over tokens; of linear_r_drop alone.
  at::Tensor kl_sum = {};
  /// Scalar, int64, no gradient: tokens whose target has the largest logit; not of linear_r_drop.
  at::Tensor right_sum = {};
};

/// Output projection and label-smoothed cross entropy in one, a block of rows at a time, so that
/// [N, V] logits never exist. x [N, D], weight [V, D], targets int64 [N].
///
/// fairseq's form: e = smoothing / (num_classes - 1); loss = (1 - smoothing - e) nll +
/// e sum_v(-log p_v). The first `num_classes` <= V rows take part (the rest are rounding rows of
/// the table: p = 0, no gradient). Targets outside [0, num_classes) are refused on the CPU.
/// @param bias  [V], added to the logits; undefined = none
/// @param softcap  the logits are bent: softcap tanh(logit / softcap) (Gemma 2, arXiv:2408.00118);
/// 0
///                 = as they are
CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias = {}, double softcap = 0);

/// x bent into (-softcap, softcap): softcap tanh(x / softcap); 0: x itself.
at::Tensor softcapped(const at::Tensor& x, double softcap);

/// What linear_r_drop is given beside its tensors.
struct RDrop {
  double smoothing = 0;  ///< as linear_cross_entropy's
  double alpha = 0;      ///< at least 0
  int64_t num_classes = 0;
};

/// R-Drop (Wu et al. 2021, arXiv:2106.14448) behind an output projection: of each token two passes
/// with other dropout, whose distributions P and Q are pulled together. x [2N, D]: rows n and N + n
/// are the two passes of token n; weight [V, D], targets int64 [N].
///
///     kl = (KL(P || Q) + KL(Q || P)) / 2,     loss = (CE(P) + CE(Q)) / 2 + alpha kl / 2
///
/// with CE as linear_cross_entropy has it. That is half of the paper's loss, so that alpha is the
/// paper's, and a loss without distance is the one without R-Drop. All sums are over N tokens; nll
/// is the mean of both passes. Blocks of rows are taken at a time, so that [N, V] logits never
/// exist, whatever the dtype and device.
/// @param bias  [V], added to the logits; undefined = none
CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias = {});

/// One step of cached self-attention in decoding, no gradient.
///
/// q [L, D] and k_new, v_new [L, E] for L lanes, where E is D or, with fewer heads of keys, G * D /
/// H; k_cache, v_cache [T_max, slots >= L, E] hold one slot per lane and step; `lineage` int32
/// [L, T_max] tells which lane's slot holds step t of this lane's history (beams that move only
/// rewrite this table). Writes k_new, v_new to step t and attends over steps 0..t -> [L, D]. The
/// table of `bias` has at least t columns in front of that of distance 0, or is [L, H, distances].
///
/// Histories may be of different lengths, and end together: that of a lane begins at step `first`,
/// int32 [L], between 0 and t. What stands before it is not read, and the result has the bits of a
/// history that begins at step 0. Undefined: all begin there. With a window, a history begins at
/// step t - window + 1 at the earliest.
at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias = {}, const at::Tensor& first = {},
                                 const AttentionLimits& limits = {});

/// Sum of squares of a flat buffer in double, in fixed blocks: the same for any number of threads.
double sum_of_squares(const at::Tensor& flat);

/// The sums over fixed blocks from which a sum of squares of a flat buffer is made, in order. A
/// buffer cut at multiples of kSumOfSquaresBlock elements gives the same numbers slice by slice, so
/// that processes that hold slices agree to the bit on a norm.
constexpr int64_t kSumOfSquaresBlock = int64_t{1} << 16;
std::vector<double> sum_of_squares_blocks(const at::Tensor& flat);

}  // namespace stretto::kernels
