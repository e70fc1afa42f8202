#include "kernels/recurrent/reference_steps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace stretto::kernels::reference {
namespace {

at::Tensor kept(const at::Tensor& keep, const at::Tensor& before, const at::Tensor& now) {
  return keep.defined() ? keep * before + (1 - keep) * now : now;
}

RecurrentState lstm(const std::vector<at::Tensor>& gates, const RecurrentWeights& weights,
                    const RecurrentState& before, const CellOptions& options, const Draws& draws) {
  const at::Tensor c =
      at::sigmoid(gates[1]) * before.c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
  const at::Tensor seen =
      options.cell == Cell::kNormLstm
          ? at::layer_norm(c, {c.size(1)}, weights.cell_gain, weights.cell_bias, options.epsilon)
          : c;
  const at::Tensor h = at::sigmoid(gates[3]) * at::tanh(seen);
  return {kept(draws.hidden, before.h, h), kept(draws.cell, before.c, c)};
}

RecurrentState gru(const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& product,
                   const RecurrentState& before, const Draws& draws) {
  const at::Tensor r = at::sigmoid(x[0] + product[0]), z = at::sigmoid(x[1] + product[1]);
  const at::Tensor n = at::tanh(x[2] + r * product[2]);
  return {kept(draws.hidden, before.h, (1 - z) * n + z * before.h), {}};
}

}  // namespace

TimeMajor::TimeMajor(const Schedule& schedule, at::Device device) {
  std::vector<int64_t> order, sequences;
  begins_.push_back(0);
  for (int64_t step = 0; step < schedule.steps(); ++step) {
    for (int64_t rank = 0; rank < schedule.active(step); ++rank)
      order.push_back(schedule.row(rank, step));
    begins_.push_back(static_cast<int64_t>(order.size()));
  }
  for (int64_t rank = 0; rank < schedule.batch(); ++rank)
    sequences.push_back(schedule.sequence(rank));
  order_ = at::tensor(order, at::kLong).to(device);
  sequences_ = at::tensor(sequences, at::kLong).to(device);
}

at::Tensor TimeMajor::packed(const std::vector<at::Tensor>& steps, const at::Tensor& like) const {
  if (steps.empty()) return at::zeros({0, like.size(1)}, like.options());
  return at::cat(steps).index_select(0, at::argsort(order_));
}

at::Tensor TimeMajor::step(const at::Tensor& rows, int64_t step) const {
  const size_t at = static_cast<size_t>(step);
  return rows.slice(0, begins_[at], begins_[at + 1]);
}

at::Tensor TimeMajor::ranks(const at::Tensor& of_sequences) const {
  return of_sequences.index_select(0, sequences_);
}

at::Tensor TimeMajor::sequences(const at::Tensor& of_ranks) const {
  return of_ranks.index_select(0, at::argsort(sequences_));
}

at::Tensor zoneout_draws(const Dropout& dropout, bool expected, const at::Tensor& x, int64_t rows,
                         int64_t width) {
  if (!dropout.active()) return {};
  const at::TensorOptions like = x.options().requires_grad(false);
  if (expected)
    return at::full({rows, width}, static_cast<double>(std::lround(dropout.p * 65536)) / 65536.0,
                    like);
  return kernels::dropout(at::ones({rows, width}, like), dropout).eq(0).to(like);
}

Masks::Masks(const Recurrent& options, const TimeMajor& time, const at::Tensor& x, int64_t width) {
  const Zoneout& zoneout = options.cell.zoneout;
  const at::Tensor of_h = zoneout_draws(zoneout.hidden, zoneout.expected, x, x.size(0), width);
  const at::Tensor of_c = zoneout_draws(zoneout.cell, zoneout.expected, x, x.size(0), width);
  if (of_h.defined()) hidden_ = time.rows(of_h);
  if (of_c.defined()) cell_ = time.rows(of_c);
  const Dropout& dropout = options.recurrent_dropout;
  if (!dropout.active()) return;
  const at::Tensor ones =
      at::ones({dropout.row_keys.size(0), width}, x.options().requires_grad(false));
  recurrent_ = time.ranks(kernels::dropout(ones, dropout));
}

Draws Masks::of(const TimeMajor& time, int64_t step) const {
  return {hidden_.defined() ? time.step(hidden_, step) : hidden_,
          cell_.defined() ? time.step(cell_, step) : cell_};
}

at::Tensor Masks::operand(const at::Tensor& h) const {
  return recurrent_.defined() ? h * recurrent_.slice(0, 0, h.size(0)) : h;
}

States::States(const RecurrentState& initial, const at::Tensor& x, const TimeMajor& time,
               int64_t ranks, int64_t width, bool has_c)
    : time_(time) {
  now_.h = time.ranks(or_zeros(initial.h, x, ranks, width));
  if (has_c) now_.c = time.ranks(or_zeros(initial.c, x, ranks, width));
}

RecurrentState States::alive(int64_t alive) {
  end(alive);
  return now_;
}

RecurrentState States::last() {
  end(0);
  // Those that ended last have the lowest ranks.
  const auto joined = [&](std::vector<at::Tensor> parts) {
    std::reverse(parts.begin(), parts.end());
    return time_.sequences(at::cat(parts));
  };
  return {joined(ended_h_), ended_c_.empty() ? at::Tensor() : joined(ended_c_)};
}

void States::end(int64_t alive) {
  ended_h_.push_back(now_.h.slice(0, alive));
  now_.h = now_.h.slice(0, 0, alive);
  if (!now_.c.defined()) return;
  ended_c_.push_back(now_.c.slice(0, alive));
  now_.c = now_.c.slice(0, 0, alive);
}

at::Tensor or_zeros(const at::Tensor& state, const at::Tensor& x, int64_t rows, int64_t width) {
  return state.defined() ? state : at::zeros({rows, width}, x.options().requires_grad(false));
}

RecurrentState advance(const at::Tensor& x, const at::Tensor& operand,
                       const RecurrentWeights& weights, const RecurrentState& before,
                       const CellOptions& options, const Draws& draws) {
  const at::Tensor product = kernels::linear(operand, weights.hidden, weights.hidden_bias);
  const int64_t parts = gates_of(options.cell);
  if (options.cell == Cell::kGru)
    return gru(x.chunk(parts, 1), product.chunk(parts, 1), before, draws);
  const at::Tensor inner = options.cell == Cell::kNormLstm
                               ? at::layer_norm(product, {product.size(1)}, weights.product_gain,
                                                weights.product_bias, options.epsilon)
                               : product;
  return lstm((x + inner).chunk(parts, 1), weights, before, options, draws);
}

}  // namespace stretto::kernels::reference
