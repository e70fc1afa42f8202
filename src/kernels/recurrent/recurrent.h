#pragma once

#include "kernels/kernels.h"

/// One direction of one recurrent layer over packed rows, differentiable, under the terms of
/// kernels.h: fp32 on the CPU runs the loops of cells.inc, all else (fp64, CUDA) the plain ATen
/// form of recurrent/reference.h.
///
/// Shape letters: N tokens of all sequences, B sequences, H units, G gates: 4 of an LSTM, 3 of a
/// GRU.
namespace stretto::kernels {

/// s is the logistic function, (x) the product of numbers in place, W h the recurrent product.
enum class Cell : uint8_t {
  /// Gates i, f, g, o = x + W h: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c').
  kLstm,
  /// Gates r, z, n, PyTorch's and cuDNN's form: n = tanh(x_n + s(r) (W h + b)_n),
  /// h' = (1 - s(z)) n + s(z) h. It has one product a step, for the reset stands behind it.
  kGru,
  /// Layer-normalised LSTM (Ba et al. 2016, arXiv:1607.06450, equations 20 to 22): gates are
  /// x + norm(W h) with one mean over all 4 H, and h' = s(o) tanh(norm(c')). The norm of the
  /// input's product is layer_norm of x, outside.
  kNormLstm,
};

/// 4 or 3.
int64_t gates_of(Cell cell);

/// Zoneout (Krueger et al. 2016, arXiv:1606.01305): a unit keeps its value of the step before with
/// probability p. `hidden` and `cell` are drawn as the dropout rule draws, element j of row n, and
/// a unit that dropout would zero is kept; they have keys of their own, and row_keys [N].
/// h' = s(o) tanh of the cell before its own zoneout, as in the paper.
struct Zoneout {
  Dropout hidden, cell;   ///< cell: LSTMs only
  bool expected = false;  ///< evaluation: the mean of both instead of a draw, without row_keys
};

/// What a cell is besides its weights.
struct CellOptions {
  Cell cell = Cell::kLstm;
  Zoneout zoneout = {};
  double epsilon = 1e-5;  ///< of kNormLstm's norms
};

struct Recurrent {
  CellOptions cell;
  Offsets offsets;       ///< of the rows; a sequence may have no rows
  bool reverse = false;  ///< from the last row of each sequence to its first
  /// Dropout of h on its way into the recurrent product, the same at all steps of a sequence (Gal &
  /// Ghahramani 2016, arXiv:1512.05287): row_keys [B], one key a sequence.
  Dropout recurrent_dropout = {};
  /// x_gates is given away: where gates are kept for backward they are written over it, which saves
  /// a buffer of its size. For a fresh result that nothing else reads; autograd is told, so that
  /// an operator that kept x_gates for its own backward fails there instead of using other numbers.
  bool overwrites_gates = false;
};

/// Weights in PyTorch's layout: nn.LSTM's and nn.GRU's weight_hh can be given as they are.
struct RecurrentWeights {
  /// W [G * H, H]. In recurrent(), RecurrentStep and AttentiveStep it may stand for codes of few
  /// bits (kernels/quantised); whoever gives it keeps it alive.
  at::Tensor hidden;
  at::Tensor hidden_bias;   ///< GRU: b [3 H], or undefined. An LSTM's belongs to its input
  at::Tensor product_gain;  ///< kNormLstm: of the recurrent product's norm, [4 H]
  at::Tensor product_bias;  ///< kNormLstm: [4 H]
  at::Tensor cell_gain;     ///< kNormLstm: of the cell's norm, [H]
  at::Tensor cell_bias;     ///< kNormLstm: [H]
};

/// [B, H] each, in the order of the sequences; undefined: zeroes. A GRU has no c.
struct RecurrentState {
  at::Tensor h, c;
};

struct RecurrentOutput {
  at::Tensor h;         ///< [N, H], in the order of the rows
  RecurrentState last;  ///< after each sequence's last step; of one without rows, the initial state
};

/// x_gates [N, G * H] is the input's product for all rows with its bias: linear(x, weight_ih,
/// bias). Steps run over all sequences that are long enough, longest first, so that there is no
/// padding; weights are packed once in each direction.
///
/// Kept for backward: the gates [N, G * H], which become the gradient of x_gates in their place
/// when the graph is not kept; c [N, H] of LSTMs; [N, H] of a GRU; [N, 4 H] and [N] of kNormLstm.
/// Under a ComputeScope the operands and results of products are rounded (compute.h), h W and its
/// slopes among them; gates and states are fp32.
RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options);

}  // namespace stretto::kernels
