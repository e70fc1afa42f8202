#include "kernels/recurrent/cell_pass.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "kernels/fused_common.h"

namespace stretto::kernels {
namespace {

const float* data_or_null(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

/// Rounds `width` up to whole lines of the cache and one more: a power of two would put all rows
/// into the same sets.
int64_t spread(int64_t width) {
  return (width + 15) / 16 * 16 + 16;
}

Lines lines(bool by_row, int64_t rows, int64_t ranks, int64_t width) {
  return by_row ? Lines::of_rows(at::empty({rows, width}, at::kFloat))
                : Lines::of_ranks(ranks, width);
}

}  // namespace

Lines Lines::of_rows(at::Tensor store) {
  Lines made;
  made.store_ = std::move(store);
  made.data_ = made.store_.data_ptr<float>();
  made.stride_ = made.store_.size(1);
  return made;
}

Lines Lines::of_ranks(int64_t ranks, int64_t width) {
  Lines made = of_rows(at::empty({ranks, spread(width)}, at::kFloat));
  made.by_row_ = false;
  return made;
}

cpu::CellNorm CellProblem::norm() const {
  return {.product_gain = data_or_null(weights.product_gain),
          .product_bias = data_or_null(weights.product_bias),
          .cell_gain = data_or_null(weights.cell_gain),
          .cell_bias = data_or_null(weights.cell_bias),
          .epsilon = static_cast<float>(options.epsilon)};
}

std::optional<Lines> CellProblem::recurrent_mask() const {
  if (!recurrent_dropout.active()) return std::nullopt;
  Lines masks = Lines::of_ranks(schedule.batch(), width);
  const at::Tensor keys = fused::keys_of(recurrent_dropout);
  const cpu::Drop drop = fused::drop_of(recurrent_dropout, keys);
  at::parallel_for(0, schedule.batch(), fused::kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t rank = begin; rank < end; ++rank)
      cpu::table().cells.mask(drop, schedule.sequence(rank), false, masks.of_rank(rank), width);
  });
  return masks;
}

ZoneoutDraws::ZoneoutDraws(const Dropout& dropout, bool expected, int64_t ranks, int64_t width)
    : active_(dropout.active()), expected_(expected), width_(width) {
  if (!active_) return;
  lines_ = Lines::of_ranks(expected ? 1 : ranks, width);
  if (expected) {
    const double share = std::lround(dropout.p * 65536) / 65536.0;
    std::fill_n(lines_.of_rank(0), width, static_cast<float>(share));
    return;
  }
  keys_ = fused::keys_of(dropout);
  drop_ = fused::drop_of(dropout, keys_);
}

const float* ZoneoutDraws::draw(int64_t row, int64_t rank) const {
  if (expected_) return lines_.of_rank(0);
  float* line = lines_.of_rank(rank);
  cpu::table().cells.mask(drop_, row, true, line, width_);
  return line;
}

CellForward::CellForward(const CellProblem& problem, const at::Tensor& x, Compute compute,
                         bool keep)
    : problem_(problem),
      x_(x.const_data_ptr<float>()),
      compute_(compute),
      norm_(problem.norm()),
      mask_(problem.recurrent_mask()),
      hidden_(problem.options.zoneout.hidden, problem.options.zoneout.expected,
              problem.schedule.batch(), problem.width),
      cell_(problem.options.zoneout.cell, problem.options.zoneout.expected,
            problem.schedule.batch(), problem.width),
      zeros_(at::zeros({problem.width}, at::kFloat)) {
  const int64_t rows = problem.schedule.rows(), ranks = problem.schedule.batch();
  const int64_t width = problem.width, all = problem.gates() * width;
  h_ = Lines::of_rows(at::empty({rows, width}, at::kFloat));
  gates_ = keep && problem.overwrites_gates ? Lines::of_rows(x) : lines(keep, rows, ranks, all);
  operand_ = Lines::of_ranks(ranks, width);
  product_ = Lines::of_ranks(ranks, all);
  if (problem.has_c()) c_ = lines(keep, rows, 2 * ranks, width);
  if (problem.options.cell == Cell::kGru) kept_ = lines(keep, rows, ranks, width);
  if (!problem.is_norm()) return;
  kept_ = lines(keep, rows, ranks, all);
  inverse_ = lines(keep, rows, ranks, 1);
}

bool CellForward::start() {
  const float* h = data_or_null(problem_.initial.h);
  if (h == nullptr) return false;
  const int64_t width = problem_.width;
  for (int64_t rank = 0; rank < problem_.schedule.batch(); ++rank)
    cpu::table().cells.operand(h + problem_.schedule.sequence(rank) * width,
                               mask_ ? mask_->of_rank(rank) : nullptr, operand_.of_rank(rank),
                               width, compute_);
  return true;
}

float* CellForward::c(int64_t rank, int64_t step) const {
  // Where c is not kept, that of one step and that of the step before take turns.
  const int64_t turn = step % 2 * problem_.schedule.batch();
  return c_.at(problem_.schedule.row(rank, step), rank + turn);
}

void CellForward::row(int64_t rank, int64_t step, const float* context) const {
  const cpu::Cells& cells = cpu::table().cells;
  const int64_t width = problem_.width, row = problem_.schedule.row(rank, step);
  const bool has_c = problem_.has_c();
  const auto initial = [&](const at::Tensor& state) {
    return state.defined()
               ? state.const_data_ptr<float>() + problem_.schedule.sequence(rank) * width
               : zeros_.const_data_ptr<float>();
  };
  const float* h_before =
      step > 0 ? h_.at(problem_.schedule.row(rank, step - 1), rank) : initial(problem_.initial.h);
  const float* c_before = step > 0 && has_c ? c(rank, step - 1) : initial(problem_.initial.c);
  const cpu::CellRow item{.x = x_ + row * problem_.gates() * width,
                          .product = product_.of_rank(rank),
                          .context = context,
                          .h_before = h_before,
                          .c_before = c_before,
                          .h = h_.at(row, rank),
                          .c = has_c ? c(rank, step) : nullptr,
                          .gates = gates_.at(row, rank),
                          .kept = kept_.at(row, rank),
                          .inverse = inverse_.at(row, rank),
                          .norm = &norm_,
                          .width = width};
  if (problem_.options.cell == Cell::kLstm)
    cells.lstm(item);
  else
    problem_.is_norm() ? cells.norm_lstm(item) : cells.gru(item);
  if (has_c && cell_.active()) cells.zoneout(cell_.draw(row, rank), c_before, item.c, width);
  if (hidden_.active()) cells.zoneout(hidden_.draw(row, rank), h_before, item.h, width);
  cells.operand(item.h, mask_ ? mask_->of_rank(rank) : nullptr, operand_.of_rank(rank), width,
                compute_);
}

void CellForward::fetch(int64_t rank, int64_t step) const {
  const int64_t width = problem_.width, all = problem_.gates() * width;
  const int64_t row = problem_.schedule.row(rank, step);
  fetch_line(x_ + row * all, all);
  if (gates_.at(row, rank) != x_ + row * all) fetch_line(gates_.at(row, rank), all);
  fetch_line(h_.at(row, rank), width);
  if (problem_.has_c()) fetch_line(c(rank, step), width);
}

RecurrentState CellForward::last() const {
  const Schedule& schedule = problem_.schedule;
  const int64_t width = problem_.width;
  const auto make = [&](const at::Tensor& initial) {
    return initial.defined() ? initial.clone() : at::zeros({schedule.batch(), width}, at::kFloat);
  };
  RecurrentState state{make(problem_.initial.h),
                       problem_.has_c() ? make(problem_.initial.c) : at::Tensor()};
  for (int64_t rank = 0; rank < schedule.batch() && schedule.length(rank) > 0; ++rank) {
    const int64_t step = schedule.length(rank) - 1, to = schedule.sequence(rank) * width;
    std::copy_n(h(schedule.row(rank, step)), width, state.h.data_ptr<float>() + to);
    if (problem_.has_c()) std::copy_n(c(rank, step), width, state.c.data_ptr<float>() + to);
  }
  return state;
}

CellTrace CellForward::trace() const {
  return {h_.tensor(), gates_.tensor(), c_.tensor(), kept_.tensor(), inverse_.tensor()};
}

}  // namespace stretto::kernels
