#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/cpu/table.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/schedule.h"

/// The cells of a pass over time on the CPU, a row at a time and without their products, for
/// recurrent(), attentive() and the steps of decoding. All tensors are fp32 and contiguous.
namespace stretto::kernels {

/// Lines of numbers, one for each row of the batch or, where nothing is kept for backward, one for
/// each rank; those of ranks lie `stride` numbers apart so that they miss each other in the cache.
class Lines {
 public:
  Lines() = default;
  static Lines of_rows(at::Tensor store);
  static Lines of_ranks(int64_t ranks, int64_t width);

  float* at(int64_t row, int64_t rank) const { return data_ + (by_row_ ? row : rank) * stride_; }
  /// For lines of ranks.
  float* of_rank(int64_t rank) const { return data_ + rank * stride_; }
  int64_t stride() const { return stride_; }
  const at::Tensor& tensor() const { return store_; }

 private:
  at::Tensor store_;
  float* data_ = nullptr;
  int64_t stride_ = 0;
  bool by_row_ = true;
};

/// Asks for `count` numbers that will be read or written soon.
inline void fetch_line(const float* from, int64_t count) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
}

/// What a pass forward leaves for one backward.
struct CellTrace {
  at::Tensor h;        ///< [N, H]: the output
  at::Tensor gates;    ///< [N, G * H]
  at::Tensor c;        ///< LSTMs: [N, H]
  at::Tensor kept;     ///< GRU: [N, H]; kNormLstm: [N, 4 H]
  at::Tensor inverse;  ///< kNormLstm: [N]
};

/// What both directions need.
struct CellProblem {
  const Schedule& schedule;
  CellOptions options;
  RecurrentWeights weights;
  RecurrentState initial;
  Dropout recurrent_dropout;
  int64_t width = 0;
  bool overwrites_gates = false;

  int64_t gates() const { return gates_of(options.cell); }
  bool has_c() const { return options.cell != Cell::kGru; }
  bool is_norm() const { return options.cell == Cell::kNormLstm; }
  cpu::CellNorm norm() const;
  /// Factors of h in the recurrent product, lines of ranks; none without recurrent dropout.
  std::optional<Lines> recurrent_mask() const;
};

/// Zoneout of a pass: which units of a row are kept.
class ZoneoutDraws {
 public:
  ZoneoutDraws(const Dropout& dropout, bool expected, int64_t ranks, int64_t width);

  bool active() const { return active_; }
  /// 1 for kept units and 0 for others, or the probability, in the line of this rank.
  const float* draw(int64_t row, int64_t rank) const;

 private:
  bool active_, expected_;
  int64_t width_;
  at::Tensor keys_;
  cpu::Drop drop_{};
  Lines lines_;
};

class CellForward {
 public:
  /// `keep`: what backward needs is kept in trace().
  CellForward(const CellProblem& problem, const at::Tensor& x, Compute compute, bool keep);

  /// The left factor of step 0's product; false if it is zero for all rows.
  bool start();
  /// From product(rank), and context(rank) unless null, to h and the next left factor.
  void row(int64_t rank, int64_t step, const float* context) const;
  /// Asks for the memory of a row that comes soon: rows lie far apart.
  void fetch(int64_t rank, int64_t step) const;

  const Lines& operand() const { return operand_; }
  const Lines& product() const { return product_; }
  float* h(int64_t row) const { return h_.at(row, 0); }
  /// After the last step.
  RecurrentState last() const;
  CellTrace trace() const;

 private:
  float* c(int64_t rank, int64_t step) const;

  const CellProblem& problem_;
  const float* x_;
  Compute compute_;
  cpu::CellNorm norm_;
  std::optional<Lines> mask_;
  ZoneoutDraws hidden_, cell_;
  at::Tensor zeros_;
  Lines h_, c_, gates_, kept_, inverse_, operand_, product_;
};

/// Slopes of h's and c's last values, [B, H] or undefined.
using LastSlopes = RecurrentState;

class CellBackward {
 public:
  /// What `trace` holds becomes slopes, but h and c.
  CellBackward(const CellProblem& problem, const CellTrace& trace, Compute compute,
               const LastSlopes& last);

  /// From the slopes of the row's h (`outer`, may be null, and back(rank) where the sequence goes
  /// on) to those of its gates and to the next left factors.
  void row(int64_t rank, int64_t step, const float* outer, const float* inside) const;
  void fetch(int64_t rank, int64_t step, const float* outer) const;
  /// After step 0: the slopes of the initial state, [B, H].
  RecurrentState initial() const;

  const Lines& operand() const { return operand_; }  ///< slopes of the recurrent product
  const Lines& back() const { return back_; }        ///< that product's own slope, of h
  const at::Tensor& gate_slopes() const { return trace_.gates; }

  /// Gradients of the cell's weights, when all rows are done.
  RecurrentWeights weights() const;

 private:
  const float* h_before(int64_t rank, int64_t step) const;
  const float* c_before(int64_t rank, int64_t step) const;
  void gather(int64_t rank, int64_t step, const float* outer, const float* inside) const;
  at::Tensor operands() const;

  const CellProblem& problem_;
  CellTrace trace_;
  Compute compute_;
  LastSlopes last_;
  cpu::CellNorm norm_;
  std::optional<Lines> mask_;
  ZoneoutDraws hidden_, cell_;
  at::Tensor zeros_;
  Lines operand_, back_, dh_, dc_, past_h_, past_c_;
  Lines inner_rows_, gain_terms_, bias_terms_;
};

}  // namespace stretto::kernels
