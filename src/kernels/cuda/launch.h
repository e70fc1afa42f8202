#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

/// The kernels as functions on raw device pointers, defined in the .cu files, which see no libtorch
/// header. They launch on `stream` and return at once; the caller holds the device and asks
/// cudaGetLastError(). Matrices are dense, row after row, in the one type that `Type` names;
/// arithmetic is fp32 and is rounded once, on writing. Nothing here uses atomics: equal inputs give
/// equal bits.
namespace stretto::kernels::cuda {

enum class Type { kFloat, kHalf, kBfloat16 };

/// The dropout rule of kernels/reference.h for one call.
struct Drop {
  uint64_t key;
  const int64_t* row_keys;  ///< on the device, one a row; null: no dropout
  uint32_t threshold;
  float scale;
  /// For attention weights [heads, queries, keys]: elements of head h start at h * 2^20.
  /// Zero heads: elements of every row start at 0.
  int64_t heads, queries;
};

struct Rows {
  int64_t count, width;
  Type type;
  cudaStream_t stream;
};

/// out = x * mask (+ residual unless null); residual and out are of type `out_type`.
void dropout(const Rows& rows, const void* x, const void* residual, void* out, Type out_type,
             const Drop& drop);

/// out[j] = sum of column j in fp32, in an order that follows from the shape alone. `partial` has
/// room for column_sum_parts(count) * width numbers.
int64_t column_sum_parts(int64_t count);
void column_sums(const Rows& rows, const void* x, float* partial, float* out);

/// kernels::Activation, in the same order.
enum class Bend { kRelu, kGelu, kGeluTanh };

/// [width], of the rows' type or fp32.
struct Bias {
  const void* data;
  Type type;
};

/// out = mask * activation(x + bias).
void bias_activation(const Rows& rows, const void* x, const Bias& bias, void* out, Bend activation,
                     const Drop& drop);

/// dx = dy * scale where out > 0: a positive output was kept and past the ReLU.
void relu_backward(const Rows& rows, const void* dy, const void* out, void* dx, float scale);

/// dx = dy * mask * gelu'(x + bias), of either form of GELU.
void gelu_backward(const Rows& rows, const void* dy, const void* x, const Bias& bias, void* dx,
                   Bend activation, const Drop& drop);

/// out = mask * silu(gate) * up; gate_up is [count, 2 width], `rows` describes out.
void swiglu(const Rows& rows, const void* gate_up, void* out, const Drop& drop);
void swiglu_backward(const Rows& rows, const void* dy, const void* gate_up, void* dgate_up,
                     const Drop& drop);

/// The same with gelu, exact, in the place of silu.
void geglu(const Rows& rows, const void* gate_up, void* out, const Drop& drop);
void geglu_backward(const Rows& rows, const void* dy, const void* gate_up, void* dgate_up,
                    const Drop& drop);

/// Values that one block adds up: the partial sums, and so the result, depend on nothing else.
constexpr int64_t kSumBlock = int64_t{1} << 15;

/// partial[b] = sum of squares of values [b kSumBlock, (b + 1) kSumBlock) in fp64, then
/// *total = sum of partial in order; partial has room for ceil(n / kSumBlock).
void sum_of_squares(const void* values, int64_t n, Type type, double* partial, double* total,
                    cudaStream_t stream);

/// Label smoothing as fairseq has it: weight `each` on every class and `target` more on the target.
struct LossScalars {
  float each, target;
};

/// What loss_rows writes, a number for each row.
struct LossOfRows {
  double *loss, *nll;
  int64_t* right;  ///< 1 where no class has a larger logit than the target, else 0
};

/// Per row of logits: nll = -log p(target), loss = target * nll - each * sum(log p). With
/// `gradient`, each logit is then replaced by d loss / d logit. A target outside [0, width) makes
/// its row's losses NaN.
void loss_rows(const Rows& rows, void* logits, const int64_t* targets, const LossOfRows& out,
               const LossScalars& scalars, bool gradient);

/// out[n] = table[ids[n]] * scale (+ position[n] unless null); an id outside [0, vocab) gives NaN.
void embed(const Rows& rows, const void* table, int64_t vocab, const int64_t* ids, float scale,
           const void* position, void* out);

/// dtable[id] = scale * sum of dy[order[i]] over the i with sorted_ids[i] == id, in that order.
/// `sorted_ids` ascends; rows of ids that do not occur are left alone, as are ids outside
/// [0, vocab).
void embed_backward(const Rows& rows, const void* dy, const int64_t* sorted_ids,
                    const int64_t* order, int64_t vocab, float scale, void* dtable);

/// The widest row of layer_norm: one block of threads holds it in registers.
constexpr int64_t kNormWidth = 8192;

/// out = (x - mean) * inverse_deviation * weight + bias, in rows of at most kNormWidth. The two
/// moments of each row are kept for the backward, whatever the type of x.
void layer_norm(const Rows& rows, const void* x, const void* weight, const void* bias,
                float epsilon, void* out, float* mean, float* inverse_deviation);

/// In how many parts `count` rows are added up: the sums over them depend on nothing else.
int64_t norm_parts(int64_t count);

struct NormSlopes {
  const void *x, *dy, *weight;
  const float *mean, *inverse_deviation;
  void *dx, *dweight, *dbias;  ///< null: not wanted
  float* partial;              ///< room for [2, norm_parts, width] where dweight or dbias is wanted
};
void layer_norm_backward(const Rows& rows, const NormSlopes& slopes);

/// Rectangles [heads, batch, queries, keys] of attention. A query sees the keys inside their
/// sequence and, if causal, none behind its own place. Behind the end of its sequence it sees none.
struct PaddedRows {
  const int64_t *query_starts, *query_lengths, *key_lengths;  ///< [batch]
  int64_t heads, batch, queries, keys;
  bool causal;
  Type type;
  cudaStream_t stream;
};

/// Most keys of such a rectangle: a row lies in the registers of one block of threads.
constexpr int64_t kPaddedKeys = 8192;

/// weights = softmax of the scores of seen keys, exactly 0 for all others; dropped = mask * weights
/// as rounded, unless null. `drop` has keys of packed rows, without heads and queries: query i of
/// sequence b is row query_starts[b] + i.
void padded_softmax(const PaddedRows& rows, const void* scores, void* weights, void* dropped,
                    const Drop& drop);

/// out = weights * (slopes * mask - sum(slopes * mask * weights)): slopes of scores from those of
/// dropped weights. What is not seen has 0, whatever its slope.
void padded_softmax_backward(const PaddedRows& rows, const void* weights, const void* slopes,
                             void* out, const Drop& drop);

/// One step of cached attention; see kernels.h. Strides in elements, columns are dense.
struct DecodeStep {
  const void *q, *k_new, *v_new;  ///< [lanes, heads * width], of k and v [lanes, kv_heads * width]
  void *k_cache, *v_cache;        ///< at [step, lane, column]
  int64_t cache_step_stride, cache_lane_stride;
  const int32_t* lineage;
  int64_t lineage_stride;
  void* out;  ///< [lanes, heads * width]
  int64_t lanes, heads, kv_heads, width, t;
  const float* bias;         ///< [heads, t + 1], what each step adds to its score; null: nothing
  int64_t bias_lane_stride;  ///< from one lane's bias to the next one's; 0: all have the same
  const int32_t* first;      ///< [lanes]: the step at which a history begins; null: 0
  Type type;
};

/// Longest history that decode_attention takes: its scores lie in shared memory.
constexpr int64_t kDecodeSteps = 8192;

void decode_attention(const DecodeStep& step, cudaStream_t stream);

}  // namespace stretto::kernels::cuda
