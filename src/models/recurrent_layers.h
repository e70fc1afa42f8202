#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/recurrent/recurrent.h"
#include "models/encoder.h"
#include "models/parts.h"
#include "models/recurrent_options.h"
#include "nn/linear.h"
#include "nn/norm.h"

/// What recurrent encoders and decoders are made of.
///
/// Shape letters: N rows of all sequences, B sequences, H units, G gates: 4, or 3 of a GRU.
namespace stretto::models {

/// What the options of encoder and decoder have in common.
struct RecurrentPart {
  kernels::Cell cell = kernels::Cell::kLstm;
  int64_t num_layers = 2;
  int64_t residual_from = 2;
  double dropout = 0;
  bool variational = false;
  double recurrent_dropout = 0;
  double zoneout_hidden = 0, zoneout_cell = 0;
  double forget_bias = 1;
  double init_bound = 0.1;

  template <class Options>
  explicit RecurrentPart(const Options& o)
      : cell(cell_named(o.cell)),
        num_layers(o.num_layers),
        residual_from(o.residual_from),
        dropout(o.dropout),
        variational(o.variational),
        recurrent_dropout(o.recurrent_dropout),
        zoneout_hidden(o.zoneout_hidden),
        zoneout_cell(cell == kernels::Cell::kGru ? 0 : o.zoneout_cell),
        forget_bias(o.forget_bias),
        init_bound(o.init_bound) {}

  bool has_c() const { return cell != kernels::Cell::kGru; }
  bool has_residual(int64_t layer) const { return layer >= residual_from; }
  /// How a step is computed in evaluation, zoneout at its mean.
  kernels::CellOptions cell_at_rest() const;
  /// A matrix [out, in] with the part's first weights, as `parts` equal ones.
  nn::Linear linear(const nn::Init& init, int64_t in, int64_t out, int64_t parts, bool bias) const;

 private:
  static kernels::Cell cell_named(const std::string& name);
};

enum class Direction : uint8_t { kForward, kBackward };

/// What one pass over a part's rows is run with: their bounds, and the dropout of every layer.
/// Masks do not depend on which sequences stand beside each other.
class RecurrentPass {
 public:
  RecurrentPass(const RecurrentPart& part, const nn::PackedRows& rows,
                const ForwardContext& context, uint64_t first_site);

  /// The input of layer number `layer`, [N, D] -> [N, D].
  at::Tensor drop_input(const at::Tensor& x, int64_t layer) const {
    return drop_input(x, layer, part_.dropout);
  }
  /// The same with a probability of its own. Where the part's `dropout` is 0, masks of
  /// `variational` are those of rows.
  at::Tensor drop_input(const at::Tensor& x, int64_t layer, double p) const;
  /// The mask of a layer's recurrent matrix of so many rows, for the whole update: it does not
  /// depend on the rows of this pass.
  kernels::Dropout weight_drop(int64_t layer, double p, int64_t matrix_rows) const;
  kernels::Recurrent of(int64_t layer, Direction direction) const;

 private:
  /// Places of a layer that drop; those of the state once for each direction.
  enum Place : uint64_t {
    kInput,
    kState,
    kZoneoutHidden,
    kZoneoutCell,
    kBackwardState,
    kWeights = 7,
    kPlaces
  };

  uint64_t site(int64_t layer, uint64_t place) const {
    return first_site_ + static_cast<uint64_t>(layer) * kPlaces + place;
  }
  kernels::Dropout zoneout(double p, uint64_t site) const;

  const RecurrentPart& part_;
  uint64_t first_site_;
  kernels::Offsets offsets_;
  nn::DropoutSource rows_;       ///< keys of rows
  nn::DropoutSource sequences_;  ///< one key for each sequence
  nn::DropoutSource inputs_;     ///< of the masks of inputs: keys of rows, or of their sequences
};

/// One direction of one recurrent layer. Parameters, G gates one below the other in the order of
/// kernels::Cell: `input.weight` [G H, D] and `input.bias` [G H], `hidden.weight` [G H, H], of a
/// GRU `hidden.bias` [3 H]; of a normed LSTM, which has no biases of products, the gains and
/// biases `input_norm`, `hidden_norm` [4 H] and `cell_norm` [H].
class RecurrentLayerImpl : public torch::nn::Module {
 public:
  /// @param in  D, width of the rows that it reads
  RecurrentLayerImpl(const nn::Init& init, const RecurrentPart& part, int64_t in, int64_t units);

  /// The input's product of all rows at once, [N, D] -> [N, G H]; nothing else reads it.
  at::Tensor gates(const at::Tensor& x) const;
  kernels::RecurrentWeights weights() const;
  /// The same, whose hidden weight may stand for codes: for kernels::recurrent and RecurrentStep.
  kernels::RecurrentWeights weights_or_codes() const;
  /// x [N, D] -> h [N, H] and the last state of each sequence.
  /// @param weight_drop  of the elements of hidden.weight, on their way into the product
  kernels::RecurrentOutput forward(const at::Tensor& x, const kernels::RecurrentState& initial,
                                   const kernels::Recurrent& options,
                                   const kernels::Dropout& weight_drop = {}) const;

  nn::Linear input{nullptr}, hidden{nullptr};
  nn::LayerNorm input_norm{nullptr}, hidden_norm{nullptr}, cell_norm{nullptr};
};
TORCH_MODULE(RecurrentLayer);

/// That a layer with a residual connection gives rows as wide as those that it reads.
void check_residual(const RecurrentPart& part, int64_t layer, int64_t in, int64_t out);

}  // namespace stretto::models
