#pragma once

#include <cstdint>
#include <vector>

#include "kernels/compute.h"
#include "kernels/convolution/table.h"
#include "kernels/gemm/combination.h"
#include "kernels/norm/plane_table.h"
#include "kernels/optimizer/table.h"
#include "kernels/quantised/table.h"
#include "kernels/recurrent/cells.h"

/// Loops of the fused kernels on raw fp32 pointers. The same sources (*.inc) are compiled once per
/// processor level; `table()` is the best one this machine runs. No libtorch, no allocation except
/// per-call scratch, no threads: the caller splits the work, and no result depends on the split.
namespace stretto::kernels::cpu {

/// The dropout rule of kernels/reference.h for one call: which rows, which threshold.
struct Drop {
  uint64_t key;
  const int64_t* row_keys;  ///< null: no dropout
  uint32_t threshold;
  float scale;
};

/// Rows [begin, end) of `width` columns.
struct Rows {
  int64_t begin, end, width;
};

/// Elements of the dropout rule that are reserved for one head.
constexpr int64_t kHeadStride = int64_t{1} << 20;

/// One sequence and head of keys, with the heads of queries that share it. Pointers are at the
/// first row and column of the first head; strides in floats.
struct AttentionItem {
  const float *q, *k, *v;
  int64_t q_stride, kv_stride;
  int64_t queries, keys, width;
  float scale;
  bool causal;
  int64_t first_element;        ///< head * kHeadStride
  Drop drop;                    ///< row_keys at the first query
  float* log_sum;               ///< [queries], written by forward, read by backward
  Compute compute;              ///< weights and their slopes are rounded before their products
  int64_t heads = 1;            ///< of queries, side by side: columns of q and of what is written
  int64_t log_sum_stride = 0;   ///< from one head's log_sum to the next one's
  const float* bias = nullptr;  ///< what distance 0 adds to a score; null: nothing is added
  int64_t bias_stride = 0;      ///< from one head's bias to the next one's
  /// From one query's bias to the next one's, which then counts for distances -bias_before ..
  /// bias_behind, and its ends beyond them. 0: one bias for all queries, for any distance.
  int64_t bias_row_stride = 0, bias_before = 0, bias_behind = 0;
  int64_t window = 0;  ///< keys that a query of a causal item sees at most; 0: all
  float softcap = 0;   ///< scores are bent into ± it, without a bias; 0: as they are
};

struct AttentionGradient {
  const float *out, *out_grad;  ///< both with out_stride
  int64_t out_stride;
  float *dq, *dk, *dv;     ///< strides as q, k, v; overwritten
  float* dbias = nullptr;  ///< of distance 0, added to; null: not wanted. Rows lie as the bias's
  int64_t dbias_stride = 0;
};

/// One lane of cached decoding: all heads of its query against steps 0..t of its history.
struct DecodeItem {
  const float* q;                  ///< [heads * width]
  const float *k_cache, *v_cache;  ///< [T, L, kv_row], of which kv_heads * width are read
  const int32_t* slots;            ///< [t]: the lane that holds step s of this history
  int64_t lane, lanes, t, heads, kv_heads, width;
  int64_t kv_row;               ///< numbers of a row, of all heads of keys
  Compute compute;              ///< weights are rounded before the product with the values
  const float* bias = nullptr;  ///< [heads, ...]: what step s adds to its score; null: nothing
  int64_t bias_stride = 0;
  float softcap = 0;  ///< as of AttentionItem
};

/// Rotation of `blocks` head-wide blocks of each row by the angles of its position.
struct Rotation {
  const float *cos, *sin;    ///< [positions, width / 2]
  const int64_t* positions;  ///< one per row
  int64_t blocks, width;
  float direction;  ///< 1 forward, -1 backward (the inverse rotation)
};

/// Backward of a layer norm, all but the number of rows: x, dy, dx [rows, width], mean and
/// inverse_deviation [rows], weight [width].
struct NormSlopes {
  const float *x, *dy, *mean, *inverse_deviation, *weight;
  float* dx;               ///< null: not wanted
  float *dweight, *dbias;  ///< [width]: what the rows bring is added
};

/// Backward of a root mean square norm: x, dy, dx [rows, width], inverse_root [rows]: 1 / sqrt(mean
/// square + epsilon), weight [width].
struct RmsNormSlopes {
  const float *x, *dy, *inverse_root, *weight;
  float* dx;       ///< null: not wanted
  float* dweight;  ///< [width]: what the rows bring is added
};

/// Cross entropy of one row of logits; see kernels.h for the formula.
struct LossRow {
  int64_t classes, target;
  float each;         ///< weight of every class
  float extra;        ///< what the target has besides
  float softcap = 0;  ///< the logits are bent into ± it first; 0: as they are
};
struct LossSums {
  double nll, all;  ///< -log p of the target, and the sum of -log p over all classes
  bool right;       ///< whether no class has a larger logit than the target
};
/// LossSums of two rows of logits together, and the mean of the Kullback-Leibler divergences of
/// their distributions in both directions.
struct PairSums {
  double nll, all, kl;
};

/// A matrix seen with or without transposition: element (i, j) is data[i * row + j * column], and
/// one of the two strides is 1.
struct MatrixView {
  const float* data;
  int64_t row, column;
};

/// Rows of A (or, transposed, its steps of depth) that are put together from lines of a matrix,
/// instead of being its lines one after the other. An entry below 0 stands for a line of zeroes.
///
/// Row i is parts side by side, from depth `begin` on: number d of it is number d % width of part
/// d / width, and part p is line table[i * step + p], or a combination of the lines that the row's
/// entries name. Transposed, step k of depth is line table[k * step], or parts[0] of such lines.
struct Lines {
  const int32_t* table = nullptr;      ///< null: as they lie
  int64_t step = 0;                    ///< from one row's first entry to the next row's
  int64_t width = 1, begin = 0;        ///< not transposed: numbers of a part, depth before the item
  bool transposed = false;             ///< strides do not tell when a line is a single number
  const Combination* parts = nullptr;  ///< null: lines as they are; else in fp32 only
};

/// Panels [begin, end) of B [depth, columns], depth <= kProductDepth, zeroes past the columns.
struct PackItem {
  MatrixView b;
  int64_t depth, columns, begin, end;
  Compute compute;  ///< what B is rounded to
  float* out;       ///< panels of `panel` columns; of pairs (see pack_bf16) half as many words
};

/// The same of a B that is put together, in fp32: `item.b` begins at its first line or number.
/// `lines.table`: step k of depth is parts[0] of the lines of row k. Without one: depth d is number
/// d % width of part d / width, and entry e of a part is `block` numbers times e from the first.
struct MixedPackItem {
  PackItem item;
  Lines lines;
  int64_t block;
};

/// C [rows, columns] (+)= A [rows, depth] times B, plus a bias for each column.
struct ProductItem {
  MatrixView a;
  const float* b;      ///< one depth block: packed, or in fp32 whole panels of a matrix as it lies
  int64_t b_step = 0;  ///< from one row of that matrix to the next; 0: packed
  int64_t rows, columns, depth;
  float* c;
  int64_t c_row;
  const float* bias;  ///< null: none
  bool add;           ///< to what C holds
  Compute compute;    ///< what A is rounded to; C is not rounded
  Lines lines = {};   ///< of A, which then begins at its line 0
  /// The packed columns that are read after these, where rows are few: they are fetched in time.
  /// Null: the product has many rows.
  const float* next = nullptr;
};

/// The rows of A of one item, at most; the depth of one block of B.
constexpr int64_t kProductRows = 192;
constexpr int64_t kProductDepth = 256;

struct Table {
  const char* name;
  /// out = x * mask (+ residual unless null).
  void (*dropout)(const float* x, const float* residual, float* out, const Rows& rows,
                  const Drop& drop);
  /// out = mask * relu(x + bias).
  void (*bias_relu)(const float* x, const float* bias, float* out, const Rows& rows,
                    const Drop& drop);
  /// dx = dy * scale where out > 0.
  void (*relu_backward)(const float* dy, const float* out, float* dx, const Rows& rows,
                        float scale);
  /// out = mask * gelu(x + bias); backward: dx = dy * mask * gelu'(x + bias).
  void (*bias_gelu)(const float* x, const float* bias, float* out, const Rows& rows,
                    const Drop& drop);
  void (*gelu_backward)(const float* dy, const float* x, const float* bias, float* dx,
                        const Rows& rows, const Drop& drop);
  /// out = mask * silu(gate) * up, gate_up [rows, 2 * width]; backward writes both halves.
  void (*swiglu)(const float* gate_up, float* out, const Rows& rows, const Drop& drop);
  void (*swiglu_backward)(const float* dy, const float* gate_up, float* slopes, const Rows& rows,
                          const Drop& drop);
  /// out[r] = table[ids[r]] * scale (+ position[r] unless null).
  void (*embed)(const float* table, const int64_t* ids, float scale, const float* position,
                float* out, const Rows& rows);
  /// slopes[ids[r]] += dy[r] * scale in the order of r, columns [begin, end) of `stride`.
  void (*embed_backward)(const float* dy, const int64_t* ids, int64_t count, float scale,
                         float* slopes, int64_t begin, int64_t end, int64_t stride);
  /// out[j] = sum over r < count of x[r * stride + j], columns [begin, end).
  void (*column_sums)(const float* x, int64_t count, int64_t stride, int64_t begin, int64_t end,
                      float* out);
  void (*layer_norm_backward)(const NormSlopes& slopes, const Rows& rows);
  /// out = x * inverse_root * weight, inverse_root [rows] = 1 / sqrt(mean square + epsilon).
  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* out,
                   float* inverse_root, const Rows& rows);
  void (*rms_norm_backward)(const RmsNormSlopes& slopes, const Rows& rows);
  void (*rotate)(const float* x, float* out, const Rows& rows, const Rotation& rotation);
  void (*adam)(float* params, const float* grads, float* m, float* v, int64_t begin, int64_t end,
               const AdamScalars& scalars);
  double (*sum_of_squares)(const float* x, int64_t count);
  /// Replaces the logits by d loss / d logits when `gradient`.
  LossSums (*loss_row)(float* logits, const LossRow& row, bool gradient);
  /// Two rows with one target: d (mean of their losses + 2 pull kl) / d logits in place of both
  /// when `gradient`; otherwise both hold unspecified numbers.
  PairSums (*pair_loss_row)(float* first, float* second, const LossRow& row, float pull,
                            bool gradient);
  void (*attention)(const AttentionItem& item, float* out, int64_t out_stride);
  void (*attention_backward)(const AttentionItem& item, const AttentionGradient& gradient);
  /// out [queries, keys] += share * softmax weights of each head, without dropout.
  void (*attention_weights)(const AttentionItem& item, float share, float* out);
  void (*decode)(const DecodeItem& item, float* out);
  /// to[i] = from[i] rounded to a half type; kFp32 and kTf32 copy. In place is fine.
  void (*round)(const float* from, float* to, int64_t count, Compute compute);
  int64_t panel;  ///< columns of a panel of B
  void (*pack)(const PackItem& item);
  void (*pack_mixed)(const MixedPackItem& mixed);
  /// rows <= kProductRows, depth <= kProductDepth.
  void (*product)(const ProductItem& item);
  /// The same on pairs of bfloat16, or null where the processor has no such product: a word of the
  /// packed B holds rows 2 k (low half) and 2 k + 1 of a column, zero past an odd depth. Sums are
  /// fp32, but a pair is added with a rounding of its own and denormals count as zero.
  void (*pack_bf16)(const PackItem& item);
  void (*product_bf16)(const ProductItem& item);
  Steps steps;                   ///< of the optimizers
  ConvolutionLoops convolution;  ///< of kernels/convolution
  Cells cells;                   ///< of kernels/recurrent
  /// As bias_gelu and gelu_backward, by the approximation.
  void (*bias_gelu_tanh)(const float* x, const float* bias, float* out, const Rows& rows,
                         const Drop& drop);
  void (*gelu_tanh_backward)(const float* dy, const float* x, const float* bias, float* dx,
                             const Rows& rows, const Drop& drop);
  /// As swiglu: out = mask * gelu(gate) * up.
  void (*geglu)(const float* gate_up, float* out, const Rows& rows, const Drop& drop);
  void (*geglu_backward)(const float* dy, const float* gate_up, float* slopes, const Rows& rows,
                         const Drop& drop);
  /// As bias_gelu and gelu_backward, of SiLU.
  void (*bias_silu)(const float* x, const float* bias, float* out, const Rows& rows,
                    const Drop& drop);
  void (*silu_backward)(const float* dy, const float* x, const float* bias, float* dx,
                        const Rows& rows, const Drop& drop);
  /// The same of the square of ReLU.
  void (*bias_relu_squared)(const float* x, const float* bias, float* out, const Rows& rows,
                            const Drop& drop);
  void (*relu_squared_backward)(const float* dy, const float* x, const float* bias, float* dx,
                                const Rows& rows, const Drop& drop);
  PlaneLoops planes;         ///< of kernels/norm/plane_norm
  QuantisedLoops quantised;  ///< of kernels/quantised
};

/// Every level this processor runs, best first; the portable one is always there.
const std::vector<const Table*>& levels();

/// The level in use: the best one, unless a LevelGuard says otherwise.
const Table& table();

/// Uses another level while it lives, in all threads: for tests and measurements.
class LevelGuard {
 public:
  explicit LevelGuard(const Table& level);
  ~LevelGuard();
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;

 private:
  const Table* before_;
};

/// Whether the level in use adds products of four bytes in one instruction (AVX512_VNNI).
bool has_byte_product();

/// Whether our own matrix product beats MKL here: MKL keeps its best paths for Intel's processors.
bool has_fast_product();

namespace portable {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}
namespace avx512 {
extern const Table kTable;
}
namespace avx512_bf16 {
void pack(const PackItem& item);
void product(const ProductItem& item);
}  // namespace avx512_bf16
namespace avx512_vnni {
extern const QuantisedLoops kQuantised;
}

}  // namespace stretto::kernels::cpu
