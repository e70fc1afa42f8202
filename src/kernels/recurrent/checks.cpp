#include "kernels/recurrent/checks.h"

#include <ATen/ATen.h>

#include "kernels/dispatch.h"

namespace stretto::kernels::checks {
namespace {

at::IntArrayRef sizes_of(const at::Tensor& x) {
  return x.defined() ? x.sizes() : at::IntArrayRef{};
}

/// A: of queries and keys.
int64_t width_of_keys(const AttentiveWeights& weights) {
  return weights.query.defined() ? weights.query.size(0) : weights.recurrent.hidden.size(1);
}

void vector(const at::Tensor& x, int64_t width, bool wanted, const char* name, const char* what) {
  TORCH_CHECK(x.defined() == wanted, "[kernels] ", name, ": ", what,
              wanted ? " is missing: this form needs it" : " is for another form: leave it out");
  TORCH_CHECK(!wanted || (x.dim() == 1 && x.size(0) == width), "[kernels] ", name, ": ", what,
              " must be [", width, "], got ", x.sizes());
}

/// An expected mask is not drawn, so only its probability is checked.
void dropout(const Dropout& dropout, int64_t rows, bool drawn, const char* name, const char* what) {
  if (drawn) return check_dropout(dropout, rows, name, what);
  check_probability(dropout, name, what);
}

}  // namespace

bool is_fused(std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& x : tensors)
    if (x.defined() && !kernels::is_fused(x)) return false;
  return true;
}

void rows_of_gates(const at::Tensor& x_gates, const RecurrentWeights& weights,
                   const Recurrent& options, const char* name) {
  TORCH_CHECK(x_gates.dim() == 2 && x_gates.size(1) == weights.hidden.size(0), "[kernels] ", name,
              ": x_gates must be [N, ", weights.hidden.size(0), "], got ", x_gates.sizes());
  check_offsets(options.offsets, x_gates.size(0), name);
  const Zoneout& zoneout = options.cell.zoneout;
  dropout(zoneout.hidden, x_gates.size(0), !zoneout.expected, name, "zoneout of h");
  dropout(zoneout.cell, x_gates.size(0), !zoneout.expected, name, "zoneout of c");
  dropout(options.recurrent_dropout, options.offsets.values.size(0) - 1, true, name,
          "recurrent dropout");
  TORCH_CHECK(options.cell.cell != Cell::kGru || !zoneout.cell.active(), "[kernels] ", name,
              ": a GRU has no c; leave zoneout of c at 0");
}

void weights_of_cell(const RecurrentWeights& weights, const CellOptions& options,
                     const char* name) {
  const int64_t parts = gates_of(options.cell);
  TORCH_CHECK(weights.hidden.defined() && weights.hidden.dim() == 2 &&
                  weights.hidden.size(0) == parts * weights.hidden.size(1),
              "[kernels] ", name, ": the recurrent weight must be [", parts, " * H, H], got ",
              sizes_of(weights.hidden));
  const int64_t width = weights.hidden.size(1);
  const bool norm = options.cell == Cell::kNormLstm;
  vector(weights.product_gain, 4 * width, norm, name, "product_gain");
  vector(weights.product_bias, 4 * width, norm, name, "product_bias");
  vector(weights.cell_gain, width, norm, name, "cell_gain");
  vector(weights.cell_bias, width, norm, name, "cell_bias");
  if (options.cell != Cell::kGru || weights.hidden_bias.defined())
    vector(weights.hidden_bias, 3 * width, options.cell == Cell::kGru, name, "hidden_bias");
}

void overwrites(const at::Tensor& x_gates, const Recurrent& options, const char* name) {
  TORCH_CHECK(!options.overwrites_gates || !(x_gates.requires_grad() && x_gates.is_leaf()),
              "[kernels] ", name,
              ": x_gates is a leaf that needs a gradient and cannot be given "
              "away; leave overwrites_gates off");
}

void state(const at::Tensor& state, int64_t rows, int64_t width, const char* name) {
  TORCH_CHECK(
      !state.defined() || (state.dim() == 2 && state.size(0) == rows && state.size(1) == width),
      "[kernels] ", name, " must be [", rows, ", ", width, "], got ", state.sizes());
}

void memory(const Memory& memory, const AttentiveWeights& weights, int64_t batch,
            const char* name) {
  const int64_t keys = width_of_keys(weights), values = weights.context.size(1);
  TORCH_CHECK(memory.keys.dim() == 2 && memory.keys.size(1) == keys, "[kernels] ", name,
              ": the memory's keys must be [S, ", keys, "], as wide as the query, got ",
              memory.keys.sizes());
  TORCH_CHECK(memory.values.dim() == 2 && memory.values.size(1) == values &&
                  memory.values.size(0) == memory.keys.size(0),
              "[kernels] ", name, ": the memory's values must be [", memory.keys.size(0), ", ",
              values, "], as wide as the context's weight, got ", memory.values.sizes());
  check_offsets(memory.offsets, memory.keys.size(0), name, "the memory's offsets");
  TORCH_CHECK(memory.offsets.values.size(0) == batch + 1, "[kernels] ", name, ": the memory has ",
              memory.offsets.values.size(0) - 1, " sequences, the layer ", batch);
}

void weights_of_attention(const AttentiveWeights& weights, Score score, const char* name) {
  const at::Tensor &context = weights.context, &query = weights.query;
  const int64_t gates = weights.recurrent.hidden.size(0), width = weights.recurrent.hidden.size(1);
  TORCH_CHECK(context.defined() && context.dim() == 2 && context.size(0) == gates, "[kernels] ",
              name, ": the context's weight must be [", gates, ", M], got ", sizes_of(context));
  TORCH_CHECK(!query.defined() || (query.dim() == 2 && query.size(1) == width), "[kernels] ", name,
              ": the query's weight must be [A, ", width, "], got ", sizes_of(query));
  const int64_t keys = width_of_keys(weights);
  if (weights.query_bias.defined())
    vector(weights.query_bias, keys, query.defined(), name, "query_bias");
  const bool additive = score == Score::kAdditive || score == Score::kNormedAdditive;
  const bool gain = score == Score::kNormedAdditive || score == Score::kScaledDot;
  vector(weights.score, keys, additive, name, "score");
  TORCH_CHECK(weights.gain.defined() == gain && (!gain || weights.gain.numel() == 1), "[kernels] ",
              name,
              ": gain must be one number for a normed or scaled score, and undefined for others");
  const at::Tensor& location = weights.location;
  TORCH_CHECK(!location.defined() || (additive && location.dim() == 2 && location.size(0) == keys &&
                                      location.size(1) % 4 == 2),
              "[kernels] ", name, ": location is for an additive score, and must be [", keys,
              ", 2 * an odd number], got ", sizes_of(location));
}

}  // namespace stretto::kernels::checks
