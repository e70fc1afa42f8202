#include <ATen/ATen.h>

#include "kernels/recurrent/cell_pass.h"
#include "kernels/recurrent/fused.h"
#include "kernels/recurrent/node.h"
#include "kernels/recurrent/product.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

/// What the passes of both directions read.
struct Layer {
  Schedule schedule;
  CellProblem problem;
  Compute compute;

  Layer(const RecurrentWeights& weights, const RecurrentState& initial, const Recurrent& options,
        Compute arithmetic)
      : schedule(options.offsets, options.reverse),
        problem{schedule,
                options.cell,
                weights,
                initial,
                options.recurrent_dropout,
                weights.hidden.size(1),
                options.overwrites_gates},
        compute(arithmetic) {}
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  int64_t steps_weights() const { return problem.weights.hidden.numel(); }
};

CellForward run_forward(const Layer& layer, const at::Tensor& x, bool keep) {
  const CellProblem& problem = layer.problem;
  CellForward cells(problem, x, layer.compute, keep);
  const StepFactor hidden(problem.weights.hidden, layer.compute);
  const at::Tensor bias = step_bias(problem, layer.compute);
  const bool starts = cells.start();
  run_steps(layer.schedule, layer.steps_weights(), Time::kForward,
            [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
              const int64_t count = bundle.rows(layer.schedule.active(step));
              if (count <= 0) return;
              multiply_hidden(cells, step > 0 || starts, hidden, bias, {bundle, count}, team);
              team.wait();
              const ThreadTeam::Range mine = team.range(count);
              for (int64_t i = mine.begin; i < mine.end; ++i) {
                if (i + 1 < mine.end) cells.fetch(bundle.rank(i + 1), step);
                cells.row(bundle.rank(i), step, nullptr);
              }
              team.wait();
            });
  return cells;
}

/// Runs all steps from the last to the first, and the product before the first if asked for.
void run_backward(const Layer& layer, const CellBackward& cells, const at::Tensor& dh,
                  bool to_initial) {
  const Schedule& schedule = layer.schedule;
  const gemm::Packed packed({layer.problem.weights.hidden}, layer.compute);
  const float* outer = dh.defined() ? dh.const_data_ptr<float>() : nullptr;
  const int64_t width = layer.problem.width;
  run_steps(schedule, layer.steps_weights(), Time::kBackward,
            [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
              const int64_t count = bundle.rows(schedule.active(step));
              if (count <= 0) return;
              const int64_t later =
                  step + 1 < schedule.steps() ? bundle.rows(schedule.active(step + 1)) : 0;
              if (later > 0)
                multiply_step(lines_of(cells.operand(), {bundle, later}), packed, nullptr,
                              lines_to(cells.back(), {bundle, later}), team);
              team.wait();
              const ThreadTeam::Range mine = team.range(count);
              const auto slope = [&](int64_t rank) {
                return outer == nullptr ? nullptr : outer + schedule.row(rank, step) * width;
              };
              for (int64_t i = mine.begin; i < mine.end; ++i) {
                const int64_t rank = bundle.rank(i), next = bundle.rank(i + 1);
                if (i + 1 < mine.end) cells.fetch(next, step, slope(next));
                cells.row(rank, step, slope(rank), nullptr);
              }
              team.wait();
            });
  if (!to_initial || schedule.steps() == 0) return;
  run_steps(Schedule(schedule.active(0)), layer.steps_weights(), Time::kBackward,
            [&](int64_t, const Bundle& bundle, const ThreadTeam& team) {
              const StepPart part{bundle, bundle.rows(schedule.active(0))};
              multiply_step(lines_of(cells.operand(), part), packed, nullptr,
                            lines_to(cells.back(), part), team);
            });
}

struct RecurrentNode : torch::autograd::Function<RecurrentNode> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x_gates,
                               const at::Tensor& hidden, const at::Tensor& hidden_bias,
                               const at::Tensor& product_gain, const at::Tensor& product_bias,
                               const at::Tensor& cell_gain, const at::Tensor& cell_bias,
                               const at::Tensor& h, const at::Tensor& c, const Recurrent& options) {
    const Compute compute = ComputeScope::current();
    const RecurrentWeights weights{present(hidden),       present(hidden_bias),
                                   present(product_gain), present(product_bias),
                                   present(cell_gain),    present(cell_bias)};
    const RecurrentState initial{present(h), present(c)};
    const Layer layer(weights, initial, options, compute);
    const CellForward cells = run_forward(layer, given(x_gates, options), true);
    const CellTrace trace = cells.trace();
    const RecurrentState last = cells.last();
    keep(ctx, compute);
    keep(ctx, options);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({hidden, hidden_bias, product_gain, product_bias, cell_gain, cell_bias,
                            h, c, trace.h, trace.gates, trace.c, trace.kept, trace.inverse,
                            options.offsets.values});
    return {trace.h, last.h, absent_if_undefined(last.c)};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Recurrent options = kept_recurrent(ctx, saved[13]);
    const Layer layer({present(saved[0]), present(saved[1]), present(saved[2]), present(saved[3]),
                       present(saved[4]), present(saved[5])},
                      {present(saved[6]), present(saved[7])}, options, kept_compute(ctx));
    const CellTrace trace{saved[8], writable(saved[9]), saved[10], writable(saved[11]), saved[12]};
    const bool to_initial = wants_any(ctx, 7, 9);
    const CellBackward cells(layer.problem, trace, layer.compute,
                             {contiguous_or_none(grads[1]),
                              layer.problem.has_c() ? contiguous_or_none(grads[2]) : at::Tensor()});
    run_backward(layer, cells, contiguous_or_none(grads[0]), to_initial);
    const RecurrentState before = to_initial ? cells.initial() : RecurrentState{};
    const RecurrentWeights slopes = wants_any(ctx, 1, 7) ? cells.weights() : RecurrentWeights{};
    return {cells.gate_slopes(),
            slopes.hidden,
            slopes.hidden_bias,
            slopes.product_gain,
            slopes.product_bias,
            slopes.cell_gain,
            slopes.cell_bias,
            before.h,
            before.c,
            {}};
  }
};

}  // namespace

RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options) {
  const RecurrentWeights own = contiguous(weights);
  const RecurrentState state{contiguous_or_none(initial.h), contiguous_or_none(initial.c)};
  if (!at::GradMode::is_enabled()) {
    const Layer layer(own, state, options, ComputeScope::current());
    const CellForward cells = run_forward(layer, x_gates.contiguous(), false);
    return {cells.trace().h, cells.last()};
  }
  const variable_list all = RecurrentNode::apply(
      x_gates, own.hidden, absent_if_undefined(own.hidden_bias),
      absent_if_undefined(own.product_gain), absent_if_undefined(own.product_bias),
      absent_if_undefined(own.cell_gain), absent_if_undefined(own.cell_bias),
      absent_if_undefined(state.h), absent_if_undefined(state.c), options);
  return {all[0], {all[1], present(all[2])}};
}

}  // namespace stretto::kernels::fused
