#include "models/recurrent_layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "nn/watch.h"

namespace stretto::models {
namespace {

/// The key of each sequence: that of its first row, which belongs to the sample alone.
at::Tensor keys_of_sequences(const at::Tensor& row_keys, const kernels::Offsets& offsets) {
  const int64_t rows = row_keys.size(0), sequences = offsets.values.size(0) - 1;
  if (rows == 0) return at::zeros({sequences}, row_keys.options());
  // An empty sequence at the end has no row there; its key is never used.
  const at::Tensor first = offsets.values.narrow(0, 0, sequences).to(at::kLong);
  return row_keys.index_select(0, first.clamp_max(rows - 1));
}

/// For every row the key of its sequence.
at::Tensor spread_over_rows(const at::Tensor& keys, const kernels::Offsets& offsets) {
  return keys.repeat_interleave(at::diff(offsets.values.to(at::kLong)));
}

}  // namespace

kernels::Cell RecurrentPart::cell_named(const std::string& name) {
  if (name == "gru") return kernels::Cell::kGru;
  return name == "norm_lstm" ? kernels::Cell::kNormLstm : kernels::Cell::kLstm;
}

kernels::CellOptions RecurrentPart::cell_at_rest() const {
  return {
      .cell = cell,
      .zoneout = {.hidden = {.p = zoneout_hidden}, .cell = {.p = zoneout_cell}, .expected = true}};
}

nn::Linear RecurrentPart::linear(const nn::Init& init, int64_t in, int64_t out, int64_t parts,
                                 bool bias) const {
  const double xavier = std::sqrt(6.0 / static_cast<double>(in + out / parts));
  const double gain = init_bound > 0 ? init_bound / xavier : 1;
  return nn::Linear(init, in, out, nn::LinearOptions{.parts = parts, .gain = gain, .bias = bias});
}

RecurrentPass::RecurrentPass(const RecurrentPart& part, const nn::PackedRows& rows,
                             const ForwardContext& context, uint64_t first_site)
    : part_(part),
      first_site_(first_site),
      offsets_(rows.offsets),
      rows_(context.dropout(rows.row_keys)),
      inputs_(rows_) {
  const bool variational = part.variational && part.dropout > 0;
  if (!context.training || (!variational && part.recurrent_dropout <= 0)) return;
  sequences_ = context.dropout(keys_of_sequences(rows.row_keys, rows.offsets));
  if (variational) {
    inputs_ = context.dropout(spread_over_rows(sequences_.row_keys, rows.offsets));
  }
}

at::Tensor RecurrentPass::drop_input(const at::Tensor& x, int64_t layer, double p) const {
  return kernels::dropout(x, inputs_.at(p, site(layer, kInput)));
}

kernels::Dropout RecurrentPass::weight_drop(int64_t layer, double p, int64_t matrix_rows) const {
  if (!rows_.training || p <= 0) return {};
  nn::DropoutSource of_matrix = rows_;
  of_matrix.row_keys = at::arange(matrix_rows, rows_.row_keys.options());
  return of_matrix.at(p, site(layer, kWeights));
}

kernels::Dropout RecurrentPass::zoneout(double p, uint64_t site) const {
  return rows_.training ? rows_.at(p, site) : kernels::Dropout{.p = p};
}

kernels::Recurrent RecurrentPass::of(int64_t layer, Direction direction) const {
  const bool reverse = direction == Direction::kBackward;
  const uint64_t shift = reverse ? kBackwardState - kState : 0;
  return {
      .cell = {.cell = part_.cell,
               .zoneout = {.hidden =
                               zoneout(part_.zoneout_hidden, site(layer, kZoneoutHidden + shift)),
                           .cell = zoneout(part_.zoneout_cell, site(layer, kZoneoutCell + shift)),
                           .expected = !rows_.training}},
      .offsets = offsets_,
      .reverse = reverse,
      .recurrent_dropout = sequences_.at(part_.recurrent_dropout, site(layer, kState + shift)),
      // Only the recurrence reads a product; a norm may keep its output.
      .overwrites_gates = part_.cell != kernels::Cell::kNormLstm};
}

RecurrentLayerImpl::RecurrentLayerImpl(const nn::Init& init, const RecurrentPart& part, int64_t in,
                                       int64_t units) {
  const int64_t gates = kernels::gates_of(part.cell);
  const bool is_norm = part.cell == kernels::Cell::kNormLstm;
  input = register_module(
      "input", part.linear(init.child("input"), in, gates * units, gates, /*bias=*/!is_norm));
  hidden = register_module("hidden", part.linear(init.child("hidden"), units, gates * units, gates,
                                                 /*bias=*/part.cell == kernels::Cell::kGru));
  const auto norm = [&](const char* name, int64_t width) {
    return register_module(name, nn::LayerNorm(init.child(name), width));
  };
  if (is_norm) {
    input_norm = norm("input_norm", gates * units);
    hidden_norm = norm("hidden_norm", gates * units);
    cell_norm = norm("cell_norm", units);
  }
  if (!part.has_c() || init.child(is_norm ? "input_norm" : "input").has_rule("bias")) return;
  const torch::NoGradGuard no_grad;
  // Gates are i, f, g, o: a cell that forgets little at first passes gradients over many steps.
  (is_norm ? input_norm->bias : input->bias).narrow(0, units, units).fill_(part.forget_bias);
}

at::Tensor RecurrentLayerImpl::gates(const at::Tensor& x) const {
  const at::Tensor product = input->forward(x);
  return input_norm ? input_norm->forward(product) : product;
}

kernels::RecurrentWeights RecurrentLayerImpl::weights() const {
  kernels::RecurrentWeights all = weights_or_codes();
  all.hidden = hidden->matrix();
  return all;
}

kernels::RecurrentWeights RecurrentLayerImpl::weights_or_codes() const {
  kernels::RecurrentWeights all{.hidden = hidden->operand(), .hidden_bias = hidden->bias};
  if (hidden_norm) {
    all.product_gain = hidden_norm->weight;
    all.product_bias = hidden_norm->bias;
    all.cell_gain = cell_norm->weight;
    all.cell_bias = cell_norm->bias;
  }
  return all;
}

kernels::RecurrentOutput RecurrentLayerImpl::forward(const at::Tensor& x,
                                                     const kernels::RecurrentState& initial,
                                                     const kernels::Recurrent& options,
                                                     const kernels::Dropout& weight_drop) const {
  kernels::RecurrentWeights all = weight_drop.active() ? weights() : weights_or_codes();
  // A mask in the graph: the parameter stays what optimizers and checkpoints know.
  all.hidden = kernels::dropout(all.hidden, weight_drop);
  kernels::RecurrentOutput out = kernels::recurrent(gates(x), all, initial, options);
  out.h = nn::watch(*this, out.h);
  return out;
}

void check_residual(const RecurrentPart& part, int64_t layer, int64_t in, int64_t out) {
  TORCH_CHECK(!part.has_residual(layer) || in == out, "[lstm] layer ", layer, " reads rows of ", in,
              " and gives rows of ", out,
              ": its input cannot be added to its output; set "
              "residual_from above ",
              layer);
}

}  // namespace stretto::models
