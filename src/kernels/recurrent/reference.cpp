#include "kernels/recurrent/reference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/recurrent/reference_steps.h"

namespace stretto::kernels::reference {
namespace {

/// A memory as rectangles [rows, longest, width], a row for each lane.
struct PaddedMemory {
  at::Tensor keys, values;
  at::Tensor hidden;  ///< bool [rows, longest]: past the end of a memory, if it has rows at all
  at::Tensor exists;  ///< [rows, 1]: 0 where a memory has no rows

  PaddedMemory(const Memory& memory, const at::Tensor& sources) {
    const at::Tensor offsets = memory.offsets.values.to(memory.keys.device(), at::kLong);
    const at::Tensor begins = offsets.slice(0, 0, -1).index_select(0, sources).unsqueeze(1);
    const at::Tensor ends = offsets.slice(0, 1).index_select(0, sources).unsqueeze(1);
    const at::Tensor counts = ends - begins;
    const int64_t rows = memory.keys.size(0);
    const int64_t longest = sources.numel() == 0 || rows == 0 ? 0 : counts.max().item<int64_t>();
    const at::Tensor places = at::arange(longest, offsets.options()).unsqueeze(0);
    const at::Tensor index = (begins + places).clamp(0, std::max<int64_t>(rows - 1, 0)).flatten();
    const auto padded = [&](const at::Tensor& x) {
      return x.index_select(0, index).view({sources.numel(), longest, x.size(1)});
    };
    keys = padded(memory.keys);
    values = padded(memory.values);
    hidden = places.ge(counts).logical_and(counts.gt(0));
    exists = counts.gt(0).to(memory.keys.scalar_type());
  }

  /// Those of the first `count` rows.
  PaddedMemory first(int64_t count) const {
    PaddedMemory part = *this;
    for (at::Tensor* x : {&part.keys, &part.values, &part.hidden, &part.exists})
      *x = x->slice(0, 0, count);
    return part;
  }
};

/// Attention weights of the step before, and the sum of those of all steps before, [rows, longest]
/// each; undefined at the first step.
struct Seen {
  at::Tensor last, sum;

  Seen first(int64_t count) const {
    return last.defined() ? Seen{last.slice(0, 0, count), sum.slice(0, 0, count)} : Seen{};
  }
  Seen with(const at::Tensor& weights) const {
    return {weights, sum.defined() ? sum + weights : weights};
  }
};

/// The memory with keys that have seen these weights.
PaddedMemory located(PaddedMemory memory, const Seen& seen, const at::Tensor& location) {
  if (!location.defined() || !seen.last.defined() || seen.last.size(1) == 0) return memory;
  const int64_t kernel = location.size(1) / 2;
  const at::Tensor filters = location.reshape({location.size(0), 2, kernel});
  memory.keys =
      memory.keys +
      at::conv1d(at::stack({seen.last, seen.sum}, 1), filters, {}, 1, kernel / 2).transpose(1, 2);
  return memory;
}

/// Attention weights [rows, longest].
at::Tensor attention_weights(const at::Tensor& query, const PaddedMemory& memory,
                             const AttentiveWeights& weights, Score score) {
  at::Tensor scores;
  if (score == Score::kDot || score == Score::kScaledDot) {
    scores = at::matmul(memory.keys, query.unsqueeze(2)).squeeze(2);
    if (score == Score::kScaledDot) scores = scores * weights.gain.reshape({});
  } else {
    at::Tensor v = weights.score;
    if (score == Score::kNormedAdditive) v = weights.gain.reshape({}) * v / v.norm();
    scores = at::matmul(at::tanh(memory.keys + query.unsqueeze(1)), v);
  }
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  return at::softmax(scores.masked_fill(memory.hidden, kNever), 1) * memory.exists;
}

/// What a step of attention gives.
struct Attended {
  at::Tensor context, weights;
};

Attended attend(const at::Tensor& h, const PaddedMemory& memory, const AttentiveWeights& weights,
                Score score) {
  const at::Tensor query =
      weights.query.defined() ? kernels::linear(h, weights.query, weights.query_bias) : h;
  if (memory.keys.size(1) == 0)
    return {at::zeros({h.size(0), memory.values.size(2)}, h.options()),
            at::zeros({h.size(0), 0}, h.options())};
  const at::Tensor shares = attention_weights(query, memory, weights, score);
  return {at::matmul(shares.unsqueeze(1), memory.values).squeeze(1), shares};
}

/// Blocks [T, Ts] of all sequences from [N, longest memory].
at::Tensor blocks_of(const at::Tensor& weights, const Offsets& rows, const Offsets& memory) {
  const at::Tensor own = rows.values.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor seen = memory.values.to(at::kCPU, at::kLong).contiguous();
  const int64_t *row = own.const_data_ptr<int64_t>(), *at = seen.const_data_ptr<int64_t>();
  std::vector<at::Tensor> blocks{at::empty({0}, weights.options())};
  for (int64_t i = 0; i + 1 < own.numel(); ++i)
    blocks.push_back(weights.slice(0, row[i], row[i + 1]).slice(1, 0, at[i + 1] - at[i]).flatten());
  return at::cat(blocks);
}

}  // namespace

RecurrentOutput recurrent(const at::Tensor& x_gates, const RecurrentWeights& weights,
                          const RecurrentState& initial, const Recurrent& options) {
  const Schedule schedule(options.offsets, options.reverse);
  const TimeMajor time(schedule, x_gates.device());
  const int64_t width = weights.hidden.size(1);
  const Masks masks(options, time, x_gates, width);
  const at::Tensor x = time.rows(x_gates);
  States states(initial, x_gates, time, schedule.batch(), width, options.cell.cell != Cell::kGru);
  std::vector<at::Tensor> outputs;
  for (int64_t step = 0; step < schedule.steps(); ++step) {
    const RecurrentState before = states.alive(schedule.active(step));
    const RecurrentState now = advance(time.step(x, step), masks.operand(before.h), weights, before,
                                       options.cell, masks.of(time, step));
    outputs.push_back(now.h);
    states.set(now);
  }
  return {time.packed(outputs, at::empty({0, width}, x_gates.options())), states.last()};
}

AttentiveOutput attentive(const at::Tensor& x_gates, const AttentiveWeights& weights,
                          const Memory& memory, const AttentiveState& initial,
                          const Attentive& options) {
  const Recurrent& layer = options.recurrent;
  const Schedule schedule(layer.offsets, false);
  const TimeMajor time(schedule, x_gates.device());
  const int64_t batch = schedule.batch(), width = weights.recurrent.hidden.size(1);
  const int64_t values = memory.values.size(1);
  const Masks masks(layer, time, x_gates, width);
  const at::Tensor x = time.rows(x_gates);
  const at::Tensor all = at::arange(batch, at::TensorOptions(at::kLong).device(x_gates.device()));
  const PaddedMemory padded(memory, time.ranks(all));
  States states({initial.h, initial.c}, x_gates, time, batch, width, layer.cell.cell != Cell::kGru);
  at::Tensor context = time.ranks(or_zeros(initial.context, x_gates, batch, values));
  Seen seen;
  std::vector<at::Tensor> outputs, contexts, shares;
  for (int64_t step = 0; step < schedule.steps(); ++step) {
    const int64_t alive = schedule.active(step);
    const RecurrentState before = states.alive(alive);
    const at::Tensor fed = kernels::linear(context.slice(0, 0, alive), weights.context);
    const RecurrentState now = advance(time.step(x, step) + fed, masks.operand(before.h),
                                       weights.recurrent, before, layer.cell, masks.of(time, step));
    seen = seen.first(alive);
    const Attended attended =
        attend(now.h, located(padded.first(alive), seen, weights.location), weights, options.score);
    seen = seen.with(attended.weights);
    context = attended.context;
    outputs.push_back(now.h);
    contexts.push_back(context);
    shares.push_back(options.weights_learn ? attended.weights : attended.weights.detach());
    states.set(now);
  }
  const at::Tensor none = at::empty({0, 1}, x_gates.options());
  return {time.packed(outputs, at::empty({0, width}, x_gates.options())),
          time.packed(contexts, at::empty({0, values}, x_gates.options())),
          options.wants_weights
              ? blocks_of(time.packed(shares, none), layer.offsets, memory.offsets)
              : at::Tensor()};
}

RecurrentState step(const at::Tensor& x_gates, const RecurrentWeights& weights,
                    const RecurrentState& before, const CellOptions& options) {
  const int64_t lanes = x_gates.size(0), width = weights.hidden.size(1);
  const auto share = [&](const Dropout& dropout) {
    return zoneout_draws(dropout, true, x_gates, lanes, width);
  };
  const RecurrentState state{or_zeros(before.h, x_gates, lanes, width),
                             or_zeros(before.c, x_gates, lanes, width)};
  return advance(x_gates, state.h, weights, state, options,
                 {share(options.zoneout.hidden), share(options.zoneout.cell)});
}

AttentiveState step(const at::Tensor& x_gates, const AttentiveWeights& weights,
                    const Memory& memory, const at::Tensor& sources, const AttentiveState& before,
                    const CellOptions& options, Score score, at::Tensor* weights_out) {
  const at::Tensor context =
      or_zeros(before.context, x_gates, x_gates.size(0), memory.values.size(1));
  const RecurrentState now = step(x_gates + kernels::linear(context, weights.context),
                                  weights.recurrent, {before.h, before.c}, options);
  const Attended attended = attend(now.h, PaddedMemory(memory, sources), weights, score);
  if (weights_out != nullptr) *weights_out = attended.weights;
  return {now.h, now.c, attended.context};
}

}  // namespace stretto::kernels::reference
