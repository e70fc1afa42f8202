#include "kernels/recurrent/node.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/rounding.h"

namespace stretto::kernels::fused {

at::Tensor absent_if_undefined(const at::Tensor& x) {
  return x.defined() ? x : at::empty({0}, at::kFloat);
}

RecurrentWeights contiguous(const RecurrentWeights& weights) {
  return {contiguous_or_codes(weights.hidden),      contiguous_or_none(weights.hidden_bias),
          contiguous_or_none(weights.product_gain), contiguous_or_none(weights.product_bias),
          contiguous_or_none(weights.cell_gain),    contiguous_or_none(weights.cell_bias)};
}

at::Tensor given(const at::Tensor& x_gates, const Recurrent& options) {
  if (options.overwrites_gates) x_gates.unsafeGetTensorImpl()->bump_version();
  return x_gates.contiguous();
}

at::Tensor writable(const at::Tensor& kept) {
  if (!kept.defined()) return kept;
  return torch::autograd::get_current_graph_task_keep_graph() ? kept.clone() : kept.detach();
}

void keep(AutogradContext* ctx, const Recurrent& options) {
  ctx->saved_data["cell"] = static_cast<int64_t>(options.cell.cell);
  ctx->saved_data["expected"] = options.cell.zoneout.expected;
  ctx->saved_data["epsilon"] = options.cell.epsilon;
  ctx->saved_data["reverse"] = options.reverse;
  keep(ctx, options.cell.zoneout.hidden, "hidden.");
  keep(ctx, options.cell.zoneout.cell, "state.");
  keep(ctx, options.recurrent_dropout, "recurrent.");
}

Recurrent kept_recurrent(AutogradContext* ctx, const at::Tensor& offsets) {
  return {.cell = {.cell = static_cast<Cell>(ctx->saved_data["cell"].toInt()),
                   .zoneout = {.hidden = kept(ctx, "hidden."),
                               .cell = kept(ctx, "state."),
                               .expected = ctx->saved_data["expected"].toBool()},
                   .epsilon = ctx->saved_data["epsilon"].toDouble()},
          .offsets = {.values = offsets},
          .reverse = ctx->saved_data["reverse"].toBool(),
          .recurrent_dropout = kept(ctx, "recurrent.")};
}

bool wants_any(AutogradContext* ctx, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    if (ctx->needs_input_grad(i)) return true;
  return false;
}

at::Tensor step_bias(const CellProblem& problem, Compute compute) {
  return rounded(problem.weights.hidden_bias, compute);
}

void multiply_hidden(const CellForward& cells, bool has_h, const StepFactor& hidden,
                     const at::Tensor& bias, const StepPart& part, const ThreadTeam& team) {
  const float* shift = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const StepRows<float> to = lines_to(cells.product(), part);
  if (has_h) return multiply_step(lines_of(cells.operand(), part), hidden, shift, to, team);
  const ThreadTeam::Range mine = team.range(part.count);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    float* line = to.data + i * to.stride;
    if (shift == nullptr)
      std::fill_n(line, hidden.columns(), 0.0f);
    else
      std::copy_n(shift, hidden.columns(), line);
  }
}

}  // namespace stretto::kernels::fused
