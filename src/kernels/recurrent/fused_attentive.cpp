#include <ATen/ATen.h>

#include "kernels/recurrent/attentive_backward.h"
#include "kernels/recurrent/attentive_forward.h"
#include "kernels/recurrent/fused.h"
#include "kernels/recurrent/node.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

/// Places of the node's inputs.
enum Input : size_t {
  kGates,
  kHidden,
  kHiddenBias,
  kProductGain,
  kProductBias,
  kCellGain,
  kCellBias,
  kContext,
  kQuery,
  kQueryBias,
  kScore,
  kGain,
  kLocation,
  kKeys,
  kValues,
  kH,
  kC,
  kFirstContext,
  kInputs
};

AttentiveWeights weights_of(const variable_list& in) {
  return {.recurrent = {present(in[kHidden]), present(in[kHiddenBias]), present(in[kProductGain]),
                        present(in[kProductBias]), present(in[kCellGain]), present(in[kCellBias])},
          .context = in[kContext],
          .query = present(in[kQuery]),
          .query_bias = present(in[kQueryBias]),
          .score = present(in[kScore]),
          .gain = present(in[kGain]),
          .location = present(in[kLocation])};
}

AttentiveState state_of(const variable_list& in) {
  return {present(in[kH]), present(in[kC]), present(in[kFirstContext])};
}

struct AttentiveNode : torch::autograd::Function<AttentiveNode> {
  static variable_list forward(AutogradContext* ctx, at::TensorList in, const Memory& memory,
                               const Attentive& options) {
    const Compute compute = ComputeScope::current();
    const variable_list inputs = in.vec();
    const PreparedMemory prepared({inputs[kKeys], inputs[kValues], memory.offsets}, options.score,
                                  compute);
    const AttentiveLayer layer(weights_of(inputs), prepared, state_of(inputs), options, compute);
    const AttentivePacks packs(layer.weights, compute);
    const AttentiveTrace trace =
        run_forward(layer, packs, given(inputs[kGates], options.recurrent), true).trace;
    keep(ctx, compute);
    keep(ctx, options.recurrent);
    ctx->saved_data["score"] = static_cast<int64_t>(options.score);
    ctx->set_materialize_grads(false);
    if (!options.weights_learn) ctx->mark_non_differentiable({trace.weights});
    variable_list saved(inputs.begin(), inputs.end());
    // Backward needs no gates; it needs the projected keys and values.
    saved[kGates] = at::Tensor();
    saved[kKeys] = prepared.keys;
    saved[kValues] = prepared.values;
    for (const at::Tensor& x :
         {trace.cells.h, trace.cells.gates, trace.cells.c, trace.cells.kept, trace.cells.inverse,
          trace.context, trace.queries, trace.weights, prepared.powers, prepared.peaks,
          options.recurrent.offsets.values, memory.offsets.values, trace.sums})
      saved.push_back(x);
    ctx->save_for_backward(saved);
    return {trace.cells.h, trace.context, trace.weights};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list in = ctx->get_saved_variables();
    const auto made = [&](size_t i) -> const at::Tensor& { return in[kInputs + i]; };
    const Attentive options{.recurrent = kept_recurrent(ctx, made(10)),
                            .score = static_cast<Score>(ctx->saved_data["score"].toInt())};
    const PreparedMemory memory(in[kKeys], in[kValues], made(8), made(9), made(11));
    const AttentiveLayer layer(weights_of(in), memory, state_of(in), options, kept_compute(ctx));
    const AttentiveTrace trace{
        .cells = {made(0), writable(made(1)), made(2), writable(made(3)), made(4)},
        .context = made(5),
        .queries = made(6),
        .weights = made(7),
        .sums = made(12)};
    const AttentiveWants wants{.weights = wants_any(ctx, kHidden, kKeys),
                               .initial = wants_any(ctx, kH, kInputs)};
    const AttentiveSlopes slopes = run_backward(
        layer, trace,
        {contiguous_or_none(grads[0]), contiguous_or_none(grads[1]), contiguous_or_none(grads[2])},
        wants);
    variable_list all(kInputs + 2);
    const RecurrentWeights& cell = slopes.weights.recurrent;
    all[kGates] = slopes.gates;
    all[kHidden] = cell.hidden;
    all[kHiddenBias] = cell.hidden_bias;
    all[kProductGain] = cell.product_gain;
    all[kProductBias] = cell.product_bias;
    all[kCellGain] = cell.cell_gain;
    all[kCellBias] = cell.cell_bias;
    all[kContext] = slopes.weights.context;
    all[kQuery] = slopes.weights.query;
    all[kQueryBias] = slopes.weights.query_bias;
    all[kScore] = slopes.weights.score;
    all[kGain] = slopes.weights.gain;
    all[kLocation] = slopes.weights.location;
    all[kKeys] = slopes.keys;
    all[kValues] = slopes.values;
    all[kH] = slopes.initial.h;
    all[kC] = slopes.initial.c;
    all[kFirstContext] = slopes.initial.context;
    return all;
  }
};

}  // namespace

AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options) {
  const RecurrentWeights cell = contiguous(weights.recurrent);
  variable_list inputs(kInputs);
  inputs[kGates] = x_gates;
  inputs[kHidden] = cell.hidden;
  inputs[kHiddenBias] = cell.hidden_bias;
  inputs[kProductGain] = cell.product_gain;
  inputs[kProductBias] = cell.product_bias;
  inputs[kCellGain] = cell.cell_gain;
  inputs[kCellBias] = cell.cell_bias;
  inputs[kContext] = weights.context.contiguous();
  inputs[kQuery] = contiguous_or_none(weights.query);
  inputs[kQueryBias] = contiguous_or_none(weights.query_bias);
  inputs[kScore] = contiguous_or_none(weights.score);
  inputs[kGain] = contiguous_or_none(weights.gain);
  inputs[kLocation] = contiguous_or_none(weights.location);
  inputs[kKeys] = memory.keys;
  inputs[kValues] = memory.values;
  inputs[kH] = contiguous_or_none(initial.h);
  inputs[kC] = contiguous_or_none(initial.c);
  inputs[kFirstContext] = contiguous_or_none(initial.context);
  for (at::Tensor& x : inputs) x = absent_if_undefined(x);
  if (at::GradMode::is_enabled()) {
    const variable_list out = AttentiveNode::apply(at::TensorList(inputs), memory, options);
    return {out[0], out[1], options.wants_weights ? out[2] : at::Tensor()};
  }
  const Compute compute = ComputeScope::current();
  const PreparedMemory prepared(memory, options.score, compute);
  const AttentiveLayer layer(weights_of(inputs), prepared, state_of(inputs), options, compute);
  const AttentivePacks packs(layer.weights, compute);
  const AttentiveTrace trace = run_forward(layer, packs, x_gates.contiguous(), false).trace;
  return {trace.cells.h, trace.context, options.wants_weights ? trace.weights : at::Tensor()};
}

}  // namespace stretto::kernels::fused
