#include "kernels/recurrent/attentive_backward.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/recurrent/node.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

using fused::lines_of;
using fused::lines_to;
using fused::StepPart;

const float* row_of(const at::Tensor& x, int64_t row) {
  return x.defined() ? x.const_data_ptr<float>() + row * x.size(1) : nullptr;
}

class AttentiveBackward {
 public:
  AttentiveBackward(const AttentiveLayer& layer, const AttentiveTrace& trace,
                    const OutputSlopes& slopes);

  void step(int64_t step, const Bundle& bundle, const ThreadTeam& team) const;
  /// Once more the products of step 0's slopes, for the state before.
  void before(const Bundle& bundle, const ThreadTeam& team) const;
  AttentiveSlopes result(const AttentiveWants& wants) const;

 private:
  void multiply(const StepPart& part, const ThreadTeam& team) const;
  void attend(int64_t rank, int64_t step) const;
  const float* weight_slopes_of(int64_t rank, int64_t row) const;
  void attend_located(const cpu::AttendRow& item, int64_t rank, int64_t step,
                      cpu::AttendSlopes slopes) const;
  void cell(int64_t rank, int64_t step) const;
  at::Tensor contexts_before() const;
  at::Tensor first_context_slopes() const;
  void add_weights(AttentiveSlopes& slopes) const;
  void add_memory(AttentiveSlopes& slopes) const;

  bool is_additive() const { return layer_.memory.powers.defined(); }
  bool has_query() const { return layer_.weights.query.defined(); }
  /// Whether the slopes of x are not those of the recurrent product.
  bool has_own_outer() const { return layer_.problem.options.cell != Cell::kLstm; }

  const AttentiveLayer& layer_;
  const AttentiveTrace& trace_;
  const OutputSlopes& slopes_;
  const gemm::Packed hidden_, context_;
  std::vector<gemm::Packed> query_;
  CellBackward cells_;
  Lines outer_, context_back_, query_operand_, query_back_;
  at::Tensor dcontext_, dquery_, dscores_, dkeys_, dscore_, dgain_;
  // With a location. Slopes of the weights of one step from the step behind it, and from the sums
  // of all steps behind it, a row for each row of the memory; of the filters for each sequence.
  at::Tensor dlast_, dsums_, dfilters_;
};

AttentiveBackward::AttentiveBackward(const AttentiveLayer& layer, const AttentiveTrace& trace,
                                     const OutputSlopes& slopes)
    : layer_(layer),
      trace_(trace),
      slopes_(slopes),
      hidden_({layer.weights.recurrent.hidden}, layer.compute()),
      context_({layer.weights.context}, layer.compute()),
      cells_(layer.problem, trace.cells, layer.compute(), {}) {
  const int64_t rows = layer.schedule.rows(), ranks = layer.schedule.batch();
  const int64_t keys = layer.memory.key_width(), values = layer.memory.value_width();
  if (has_query()) query_.emplace_back(gemm::Operand{layer.weights.query}, layer.compute());
  outer_ = Lines::of_ranks(ranks, layer.problem.gates() * layer.problem.width);
  context_back_ = Lines::of_ranks(ranks, values);
  query_operand_ = Lines::of_ranks(ranks, keys);
  query_back_ = Lines::of_ranks(ranks, layer.problem.width);
  dcontext_ = at::empty({rows, values}, at::kFloat);
  dquery_ = at::empty({rows, keys}, at::kFloat);
  dscores_ = at::empty({layer.num_weights()}, at::kFloat);
  dgain_ = at::zeros({ranks}, at::kFloat);
  if (!is_additive()) return;
  dkeys_ = at::zeros({layer.memory.begins.back(), keys}, at::kFloat);
  dscore_ = at::zeros({ranks, keys}, at::kFloat);
  if (!layer.location.is_on()) return;
  dlast_ = at::zeros({layer.memory.begins.back()}, at::kFloat);
  dsums_ = at::zeros({layer.memory.begins.back()}, at::kFloat);
  dfilters_ = at::zeros({ranks, 2 * layer.location.kernel() * keys}, at::kFloat);
}

void AttentiveBackward::multiply(const StepPart& part, const ThreadTeam& team) const {
  multiply_step(lines_of(cells_.operand(), part), hidden_, nullptr, lines_to(cells_.back(), part),
                team);
  const Lines& outer = has_own_outer() ? outer_ : cells_.operand();
  multiply_step(lines_of(outer, part), context_, nullptr, lines_to(context_back_, part), team);
}

const float* AttentiveBackward::weight_slopes_of(int64_t rank, int64_t row) const {
  return slopes_.weights.defined() ? layer_.weights_at(slopes_.weights, rank, row) : nullptr;
}

/// The same with a location: the weights of a step are read by the steps behind it.
void AttentiveBackward::attend_located(const cpu::AttendRow& item, int64_t rank, int64_t step,
                                       cpu::AttendSlopes slopes) const {
  const cpu::Cells& cells = cpu::table().cells;
  const int64_t row = layer_.schedule.row(rank, step), source = layer_.source(rank);
  float* dlast = dlast_.data_ptr<float>() + layer_.memory.begin(source);
  float* dsums = dsums_.data_ptr<float>() + layer_.memory.begin(source);
  // What the step behind left becomes the slope of this step's weights.
  cells.add(dsums, dlast, item.count);
  if (slopes.dweights != nullptr) cells.add(slopes.dweights, dlast, item.count);
  slopes.dweights = dlast;
  if (step == 0) return cells.attend_backward(item, slopes);
  const Location& location = layer_.location;
  const float* last = layer_.weights_at(trace_.weights, rank, row - 1);
  const float* sums = layer_.weights_at(trace_.sums, rank, row);
  float* of_memory = slopes.dkeys;
  slopes.dkeys = location.key_slopes(item);
  cells.attend_backward(location.seen(item, last, sums), slopes);
  cells.add(slopes.dkeys, of_memory, item.count * item.width);
  location.backward(
      item, last, sums,
      {.keys = slopes.dkeys,
       .filters = dfilters_.data_ptr<float>() + layer_.schedule.sequence(rank) * dfilters_.size(1),
       .last = dlast,
       .sum = dsums});
}

/// From the slope of the context, of which the step behind gives a part, to the query's.
void AttentiveBackward::attend(int64_t rank, int64_t step) const {
  const cpu::Cells& cells = cpu::table().cells;
  const Schedule& schedule = layer_.schedule;
  const PreparedMemory& memory = layer_.memory;
  const int64_t row = schedule.row(rank, step), sequence = schedule.sequence(rank);
  const int64_t values = memory.value_width(), keys = memory.key_width();
  float* dcontext = dcontext_.data_ptr<float>() + row * values;
  std::fill_n(dcontext, values, 0.0f);
  if (slopes_.context.defined()) cells.add(row_of(slopes_.context, row), dcontext, values);
  if (step + 1 < schedule.length(rank)) cells.add(context_back_.of_rank(rank), dcontext, values);
  cpu::table().round(dcontext, dcontext, values, layer_.compute());
  const cpu::AttendRow item =
      attend_row(memory, layer_.scorer, layer_.source(rank), row_of(trace_.queries, row),
                 layer_.weights_at(trace_.weights, rank, row));
  float* dquery = dquery_.data_ptr<float>() + row * keys;
  if (item.count == 0) {
    std::fill_n(dquery, keys, 0.0f);
  } else {
    const cpu::AttendSlopes slopes{
        .dcontext = dcontext,
        .dquery = dquery,
        .dscores = layer_.weights_at(dscores_, rank, row),
        .dkeys = is_additive() ? dkeys_.data_ptr<float>() + memory.begin(layer_.source(rank)) * keys
                               : nullptr,
        .dscore = is_additive() ? dscore_.data_ptr<float>() + sequence * keys : nullptr,
        .dgain = dgain_.data_ptr<float>() + sequence,
        .dweights = weight_slopes_of(rank, row)};
    layer_.location.is_on() ? attend_located(item, rank, step, slopes)
                            : cells.attend_backward(item, slopes);
  }
  if (has_query())
    cells.operand(dquery, nullptr, query_operand_.of_rank(rank), keys, layer_.compute());
}

void AttentiveBackward::cell(int64_t rank, int64_t step) const {
  const int64_t row = layer_.schedule.row(rank, step);
  cells_.row(rank, step, row_of(slopes_.h, row),
             has_query() ? query_back_.of_rank(rank) : row_of(dquery_, row));
  if (!has_own_outer()) return;
  const int64_t width = cells_.gate_slopes().size(1);
  cpu::table().cells.operand(row_of(cells_.gate_slopes(), row), nullptr, outer_.of_rank(rank),
                             width, layer_.compute());
}

void AttentiveBackward::step(int64_t step, const Bundle& bundle, const ThreadTeam& team) const {
  const Schedule& schedule = layer_.schedule;
  const StepPart part{bundle, bundle.rows(schedule.active(step))};
  if (part.count <= 0) return;
  const int64_t later = step + 1 < schedule.steps() ? bundle.rows(schedule.active(step + 1)) : 0;
  if (later > 0) multiply({bundle, later}, team);
  team.wait();
  const ThreadTeam::Range mine = team.range(part.count);
  for (int64_t i = mine.begin; i < mine.end; ++i) attend(bundle.rank(i), step);
  if (has_query()) {
    team.wait();
    multiply_step(lines_of(query_operand_, part), query_[0], nullptr, lines_to(query_back_, part),
                  team);
    team.wait();
  }
  for (int64_t i = mine.begin; i < mine.end; ++i) cell(bundle.rank(i), step);
  team.wait();
}

void AttentiveBackward::before(const Bundle& bundle, const ThreadTeam& team) const {
  multiply({bundle, bundle.rows(layer_.schedule.active(0))}, team);
}

/// The left factors of all rows' products with the context's weight, [N, M].
at::Tensor AttentiveBackward::contexts_before() const {
  const Schedule& schedule = layer_.schedule;
  const int64_t width = trace_.context.size(1);
  at::Tensor all = at::empty_like(trace_.context);
  float* to = all.data_ptr<float>();
  for (int64_t rank = 0; rank < schedule.batch(); ++rank)
    for (int64_t step = 0; step < schedule.length(rank); ++step) {
      float* line = to + schedule.row(rank, step) * width;
      const float* from = step > 0 ? row_of(trace_.context, schedule.row(rank, step - 1))
                                   : row_of(layer_.first_context, schedule.sequence(rank));
      if (from == nullptr)
        std::fill_n(line, width, 0.0f);
      else
        std::copy_n(from, width, line);
    }
  return all;
}

at::Tensor AttentiveBackward::first_context_slopes() const {
  const Schedule& schedule = layer_.schedule;
  const int64_t width = layer_.memory.value_width();
  at::Tensor slopes = at::zeros({schedule.batch(), width}, at::kFloat);
  for (int64_t rank = 0; rank < schedule.batch() && schedule.length(rank) > 0; ++rank)
    std::copy_n(context_back_.of_rank(rank), width,
                slopes.data_ptr<float>() + schedule.sequence(rank) * width);
  return slopes;
}

/// a^T b, the gradient of a weight from slopes a [N, O] and left factors b [N, I].
at::Tensor weight_slopes(const at::Tensor& a, const at::Tensor& b, Compute compute) {
  at::Tensor out = at::empty({a.size(1), b.size(1)}, a.options());
  gemm::multiply({a, true}, gemm::Packed({b}, compute), {}, false, out);
  return out;
}

void AttentiveBackward::add_weights(AttentiveSlopes& slopes) const {
  slopes.weights.recurrent = cells_.weights();
  slopes.weights.context = weight_slopes(slopes.gates, contexts_before(), layer_.compute());
  if (has_query()) {
    slopes.weights.query = weight_slopes(dquery_, trace_.cells.h, layer_.compute());
    if (layer_.weights.query_bias.defined()) slopes.weights.query_bias = gemm::column_sums(dquery_);
  }
  if (is_additive()) slopes.weights.score = gemm::column_sums(dscore_);
  if (layer_.location.is_on()) slopes.weights.location = layer_.location.weight_slopes(dfilters_);
  if (!is_additive() && layer_.weights.gain.defined())
    slopes.weights.gain =
        gemm::column_sums(dgain_.unsqueeze(1)).reshape(layer_.weights.gain.sizes());
}

void AttentiveBackward::add_memory(AttentiveSlopes& slopes) const {
  const Compute compute = layer_.compute();
  slopes.values = blend_rows(layer_.memory, rounded(trace_.weights, compute), dcontext_,
                             layer_.begins(), compute);
  if (is_additive()) {
    slopes.keys = dkeys_;
    return;
  }
  slopes.keys = blend_rows(layer_.memory, dscores_, trace_.queries, layer_.begins(), compute);
  if (layer_.scorer.gain != 1.0f) slopes.keys.mul_(layer_.scorer.gain);
}

AttentiveSlopes AttentiveBackward::result(const AttentiveWants& wants) const {
  AttentiveSlopes slopes;
  slopes.gates = cells_.gate_slopes();
  if (wants.initial) {
    const RecurrentState state = cells_.initial();
    slopes.initial = {state.h, state.c, first_context_slopes()};
  }
  if (wants.weights) add_weights(slopes);
  add_memory(slopes);
  return slopes;
}

}  // namespace

AttentiveSlopes run_backward(const AttentiveLayer& layer, const AttentiveTrace& trace,
                             const OutputSlopes& slopes, const AttentiveWants& wants) {
  const AttentiveBackward pass(layer, trace, slopes);
  const Schedule& schedule = layer.schedule;
  run_steps(schedule, layer.step_weights(), Time::kBackward,
            [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
              pass.step(step, bundle, team);
            });
  if (wants.initial && schedule.steps() > 0)
    run_steps(
        Schedule(schedule.active(0)), layer.step_weights(), Time::kBackward,
        [&](int64_t, const Bundle& bundle, const ThreadTeam& team) { pass.before(bundle, team); });
  return pass.result(wants);
}

}  // namespace stretto::kernels
