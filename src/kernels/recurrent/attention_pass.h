#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/recurrent/attentive.h"

/// Attention inside a pass over time on the CPU, a row at a time, for attentive() and the steps of
/// decoding. All tensors are fp32 and contiguous.
namespace stretto::kernels {

inline bool is_additive(Score score) {
  return score == Score::kAdditive || score == Score::kNormedAdditive;
}

/// The normed form is the plain one with another v, so that the loops know one: the weights with
/// that v, differentiable, and the same weights for every other score.
AttentiveWeights plain_score(AttentiveWeights weights, Score score);

/// A memory in the form that the loops read: made once for all steps.
struct PreparedMemory {
  at::Tensor keys, values;  ///< [S, A] and [S, M]; factors of products are rounded
  at::Tensor powers;        ///< additive: exp(2 keys)
  at::Tensor peaks;         ///< additive: the largest |key| of each row, [S]
  std::vector<int64_t> begins;

  PreparedMemory() = default;
  PreparedMemory(const Memory& memory, Score score, Compute compute);
  /// The same from what an earlier one made.
  PreparedMemory(at::Tensor keys, at::Tensor values, at::Tensor powers, at::Tensor peaks,
                 const at::Tensor& offsets);

  int64_t begin(int64_t source) const { return begins[static_cast<size_t>(source)]; }
  int64_t count(int64_t source) const { return begin(source + 1) - begin(source); }
  int64_t key_width() const { return keys.size(1); }
  int64_t value_width() const { return values.size(1); }
};

/// How queries are scored: the v of v . tanh(q + k), or the g of g q . k.
struct Scorer {
  at::Tensor score;
  float gain = 1;
  Compute compute = Compute::kFp32;
};

/// One query against the memory of `source`.
cpu::AttendRow attend_row(const PreparedMemory& memory, const Scorer& scorer, int64_t source,
                          const float* query, float* weights);

/// out [rows of the memory, columns] of each source = factors^T rows, where source s has rows
/// [begins[s], begins[s + 1]) of `rows` [N, columns] and a block of `factors`, [its rows, its
/// memory's rows], all blocks one after the other. Rounded in half precision.
at::Tensor blend_rows(const PreparedMemory& memory, const at::Tensor& factors,
                      const at::Tensor& rows, const std::vector<int64_t>& begins, Compute compute);

}  // namespace stretto::kernels
