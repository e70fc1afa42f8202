#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/cell_pass.h"
#include "kernels/rounding.h"

namespace stretto::kernels {

CellBackward::CellBackward(const CellProblem& problem, const CellTrace& trace, Compute compute,
                           const LastSlopes& last)
    : problem_(problem),
      trace_(trace),
      compute_(compute),
      last_(last),
      norm_(problem.norm()),
      mask_(problem.recurrent_mask()),
      hidden_(problem.options.zoneout.hidden, problem.options.zoneout.expected,
              problem.schedule.batch(), problem.width),
      cell_(problem.options.zoneout.cell, problem.options.zoneout.expected,
            problem.schedule.batch(), problem.width),
      zeros_(at::zeros({problem.width}, at::kFloat)) {
  const int64_t rows = problem.schedule.rows(), ranks = problem.schedule.batch();
  const int64_t width = problem.width, all = problem.gates() * width;
  operand_ = Lines::of_ranks(ranks, all);
  for (Lines* line : {&back_, &dh_, &dc_, &past_h_, &past_c_})
    *line = Lines::of_ranks(ranks, width);
  if (!problem.is_norm()) return;
  inner_rows_ = Lines::of_rows(at::empty({rows, all}, at::kFloat));
  gain_terms_ = Lines::of_rows(at::empty({rows, width}, at::kFloat));
  bias_terms_ = Lines::of_rows(at::empty({rows, width}, at::kFloat));
}

const float* CellBackward::h_before(int64_t rank, int64_t step) const {
  const Schedule& schedule = problem_.schedule;
  if (step > 0)
    return trace_.h.const_data_ptr<float>() + schedule.row(rank, step - 1) * problem_.width;
  if (!problem_.initial.h.defined()) return zeros_.const_data_ptr<float>();
  return problem_.initial.h.const_data_ptr<float>() + schedule.sequence(rank) * problem_.width;
}

const float* CellBackward::c_before(int64_t rank, int64_t step) const {
  const Schedule& schedule = problem_.schedule;
  if (!problem_.has_c()) return nullptr;
  if (step > 0)
    return trace_.c.const_data_ptr<float>() + schedule.row(rank, step - 1) * problem_.width;
  if (!problem_.initial.c.defined()) return zeros_.const_data_ptr<float>();
  return problem_.initial.c.const_data_ptr<float>() + schedule.sequence(rank) * problem_.width;
}

/// The whole slope of h and of c at this row.
void CellBackward::gather(int64_t rank, int64_t step, const float* outer,
                          const float* inside) const {
  const cpu::Cells& cells = cpu::table().cells;
  const int64_t width = problem_.width, sequence = problem_.schedule.sequence(rank);
  const bool ends = step + 1 == problem_.schedule.length(rank);
  const bool carries = !problem_.has_c() || hidden_.active();
  float *dh = dh_.of_rank(rank), *back = back_.of_rank(rank);
  if (!ends && mask_) cells.operand(back, mask_->of_rank(rank), back, width, Compute::kFp32);
  if (!ends && !carries && outer != nullptr) {
    cells.sum(back, outer, dh, width);
  } else {
    // Where a sequence goes on, dh holds what the step behind gave to h past its product.
    if (ends || !carries) std::fill_n(dh, width, 0.0f);
    if (!ends) cells.add(back, dh, width);
    if (outer != nullptr) cells.add(outer, dh, width);
  }
  if (inside != nullptr) cells.add(inside, dh, width);
  if (!ends) return;
  if (last_.h.defined()) cells.add(last_.h.const_data_ptr<float>() + sequence * width, dh, width);
  float* dc = dc_.of_rank(rank);
  std::fill_n(dc, width, 0.0f);
  if (last_.c.defined()) cells.add(last_.c.const_data_ptr<float>() + sequence * width, dc, width);
}

void CellBackward::row(int64_t rank, int64_t step, const float* outer, const float* inside) const {
  const cpu::Cells& cells = cpu::table().cells;
  const int64_t width = problem_.width, all = problem_.gates() * width;
  const int64_t row = problem_.schedule.row(rank, step);
  gather(rank, step, outer, inside);
  float *dh = dh_.of_rank(rank), *dc = dc_.of_rank(rank), *inner = operand_.of_rank(rank);
  float *past_h = past_h_.of_rank(rank), *past_c = past_c_.of_rank(rank);
  const bool keeps_c = problem_.has_c() && cell_.active();
  if (hidden_.active()) cells.zoneout_backward(hidden_.draw(row, rank), dh, past_h, width);
  if (keeps_c) cells.zoneout_backward(cell_.draw(row, rank), dc, past_c, width);
  const auto of_row = [&](const at::Tensor& x, int64_t count) {
    return x.defined() ? x.data_ptr<float>() + row * count : nullptr;
  };
  const cpu::CellSlopes item{.gates = of_row(trace_.gates, all),
                             .kept = of_row(trace_.kept, problem_.is_norm() ? all : width),
                             .h_before = h_before(rank, step),
                             .c_before = c_before(rank, step),
                             .dh = dh,
                             .dc = dc,
                             .inner = inner,
                             .inverse = of_row(trace_.inverse, 1),
                             .gain_terms = gain_terms_.at(row, rank),
                             .bias_terms = bias_terms_.at(row, rank),
                             .norm = &norm_,
                             .width = width};
  if (problem_.options.cell == Cell::kLstm)
    cells.lstm_backward(item);
  else
    problem_.is_norm() ? cells.norm_lstm_backward(item) : cells.gru_backward(item);
  if (keeps_c) cells.add(past_c, dc, width);
  if (hidden_.active()) {
    // An LSTM gives nothing to h but by its product; a GRU left its part in dh.
    if (problem_.has_c()) std::fill_n(dh, width, 0.0f);
    cells.add(past_h, dh, width);
  }
  if (problem_.is_norm()) std::copy_n(inner, all, inner_rows_.at(row, rank));
  if (is_half(compute_)) cpu::table().round(inner, inner, all, compute_);
}

void CellBackward::fetch(int64_t rank, int64_t step, const float* outer) const {
  const int64_t width = problem_.width, all = problem_.gates() * width;
  fetch_line(trace_.gates.const_data_ptr<float>() + problem_.schedule.row(rank, step) * all, all);
  if (problem_.has_c())
    fetch_line(c_before(rank, step), width);
  else
    fetch_line(h_before(rank, step), width);
  if (outer != nullptr) fetch_line(outer, width);
}

RecurrentState CellBackward::initial() const {
  const Schedule& schedule = problem_.schedule;
  const cpu::Cells& cells = cpu::table().cells;
  const int64_t width = problem_.width;
  const auto make = [&](const at::Tensor& last) {
    return last.defined() ? last.clone() : at::zeros({schedule.batch(), width}, at::kFloat);
  };
  RecurrentState slopes{make(last_.h), problem_.has_c() ? make(last_.c) : at::Tensor()};
  for (int64_t rank = 0; rank < schedule.batch() && schedule.length(rank) > 0; ++rank) {
    const int64_t at = schedule.sequence(rank) * width;
    float *back = back_.of_rank(rank), *to = slopes.h.data_ptr<float>() + at;
    if (mask_) cells.operand(back, mask_->of_rank(rank), back, width, Compute::kFp32);
    std::copy_n(back, width, to);
    if (!problem_.has_c() || hidden_.active()) cells.add(dh_.of_rank(rank), to, width);
    if (problem_.has_c()) std::copy_n(dc_.of_rank(rank), width, slopes.c.data_ptr<float>() + at);
  }
  return slopes;
}

/// The left factors of all rows' products, [N, H].
at::Tensor CellBackward::operands() const {
  const Schedule& schedule = problem_.schedule;
  const int64_t width = problem_.width;
  at::Tensor all = at::empty({schedule.rows(), width}, at::kFloat);
  float* to = all.data_ptr<float>();
  at::parallel_for(0, schedule.batch(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t rank = begin; rank < end; ++rank)
      for (int64_t step = 0; step < schedule.length(rank); ++step)
        cpu::table().cells.operand(h_before(rank, step), mask_ ? mask_->of_rank(rank) : nullptr,
                                   to + schedule.row(rank, step) * width, width, Compute::kFp32);
  });
  return all;
}

RecurrentWeights CellBackward::weights() const {
  const int64_t width = problem_.width, all = problem_.gates() * width;
  const gemm::Packed before({operands()}, compute_);
  RecurrentWeights slopes;
  slopes.hidden = at::empty({all, width}, at::kFloat);
  const auto product = [&](const at::Tensor& of_rows, int64_t begin, int64_t end) {
    at::Tensor out = slopes.hidden.slice(0, begin, end);
    gemm::multiply({of_rows.slice(1, 0, end - begin), true}, before, {}, false, out);
  };
  if (problem_.options.cell != Cell::kGru) {
    product(problem_.is_norm() ? inner_rows_.tensor() : trace_.gates, 0, all);
  } else {
    product(trace_.gates, 0, 2 * width);
    product(trace_.kept, 2 * width, all);
    if (problem_.weights.hidden_bias.defined()) {
      slopes.hidden_bias = gemm::column_sums(trace_.gates);
      slopes.hidden_bias.slice(0, 2 * width).copy_(gemm::column_sums(trace_.kept));
    }
  }
  if (problem_.is_norm()) {
    slopes.product_gain = gemm::column_sums(trace_.kept);
    slopes.product_bias = gemm::column_sums(trace_.gates);
    slopes.cell_gain = gemm::column_sums(gain_terms_.tensor());
    slopes.cell_bias = gemm::column_sums(bias_terms_.tensor());
  }
  return slopes;
}

}  // namespace stretto::kernels
