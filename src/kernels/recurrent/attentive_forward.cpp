#include "kernels/recurrent/attentive_forward.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/recurrent/node.h"

namespace stretto::kernels {
namespace {

using fused::lines_of;
using fused::lines_to;
using fused::StepPart;

/// One pass: cells, then queries, then contexts; crews wait between.
class AttentiveForward {
 public:
  AttentiveForward(const AttentiveLayer& layer, const AttentivePacks& packs, const at::Tensor& x,
                   bool keep);

  void start();
  void step(int64_t step, const Bundle& bundle, const ThreadTeam& team) const;
  AttentiveResult result() const {
    return {{cells_.trace(), context_, queries_, weights_, sums_}, cells_.last()};
  }

 private:
  bool has_context(int64_t step) const { return step > 0 || layer_.first_context.defined(); }
  void multiply(int64_t step, const StepPart& part, const ThreadTeam& team) const;
  void cell(int64_t rank, int64_t step) const;
  void attend(int64_t rank, int64_t step) const;
  /// `item` with what the weights of the steps before add to its keys.
  cpu::AttendRow located(const cpu::AttendRow& item, int64_t rank, int64_t step) const;

  const AttentiveLayer& layer_;
  const AttentivePacks& packs_;
  CellForward cells_;
  bool has_h_ = false;
  Lines query_operand_, query_, context_operand_, context_product_;
  at::Tensor context_, queries_, weights_, sums_;
};

AttentiveForward::AttentiveForward(const AttentiveLayer& layer, const AttentivePacks& packs,
                                   const at::Tensor& x, bool keep)
    : layer_(layer), packs_(packs), cells_(layer.problem, x, layer.compute(), keep) {
  const int64_t rows = layer.schedule.rows(), ranks = layer.schedule.batch();
  const int64_t keys = layer.memory.key_width(), values = layer.memory.value_width();
  query_operand_ = Lines::of_ranks(ranks, layer.problem.width);
  query_ = Lines::of_ranks(ranks, keys);
  context_operand_ = Lines::of_ranks(ranks, values);
  context_product_ = Lines::of_ranks(ranks, layer.problem.gates() * layer.problem.width);
  context_ = at::empty({rows, values}, at::kFloat);
  if (keep) queries_ = at::empty({rows, keys}, at::kFloat);
  weights_ = at::empty({layer.num_weights()}, at::kFloat);
  if (layer.location.is_on()) sums_ = at::empty({layer.num_weights()}, at::kFloat);
}

void AttentiveForward::start() {
  has_h_ = cells_.start();
  if (!has_context(0)) return;
  const int64_t width = layer_.memory.value_width();
  const float* first = layer_.first_context.const_data_ptr<float>();
  for (int64_t rank = 0; rank < layer_.schedule.batch(); ++rank)
    cpu::table().cells.operand(first + layer_.schedule.sequence(rank) * width, nullptr,
                               context_operand_.of_rank(rank), width, layer_.compute());
}

void AttentiveForward::multiply(int64_t step, const StepPart& part, const ThreadTeam& team) const {
  fused::multiply_hidden(cells_, step > 0 || has_h_, packs_.hidden, packs_.hidden_bias, part, team);
  if (has_context(step))
    multiply_step(lines_of(context_operand_, part), packs_.context, nullptr,
                  lines_to(context_product_, part), team);
}

void AttentiveForward::cell(int64_t rank, int64_t step) const {
  cells_.row(rank, step, has_context(step) ? context_product_.of_rank(rank) : nullptr);
  const Lines& to = packs_.query.empty() ? query_ : query_operand_;
  cpu::table().cells.operand(cells_.h(layer_.schedule.row(rank, step)), nullptr, to.of_rank(rank),
                             layer_.problem.width, layer_.query_compute());
}

cpu::AttendRow AttentiveForward::located(const cpu::AttendRow& item, int64_t rank,
                                         int64_t step) const {
  const int64_t row = layer_.schedule.row(rank, step);
  float* sums = layer_.weights_at(sums_, rank, row);
  if (step == 0) {
    std::fill_n(sums, item.count, 0.0f);
    return item;
  }
  const float* last = layer_.weights_at(weights_, rank, row - 1);
  cpu::table().cells.sum(layer_.weights_at(sums_, rank, row - 1), last, sums, item.count);
  return layer_.location.seen(item, last, sums);
}

void AttentiveForward::attend(int64_t rank, int64_t step) const {
  const int64_t row = layer_.schedule.row(rank, step), values = layer_.memory.value_width();
  const float* query = query_.of_rank(rank);
  float* context = context_.data_ptr<float>() + row * values;
  cpu::AttendRow item = attend_row(layer_.memory, layer_.scorer, layer_.source(rank), query,
                                   layer_.weights_at(weights_, rank, row));
  if (layer_.location.is_on() && item.count > 0) item = located(item, rank, step);
  if (item.count == 0)
    std::fill_n(context, values, 0.0f);
  else
    cpu::table().cells.attend(item, context);
  std::copy_n(context, values, context_operand_.of_rank(rank));
  if (queries_.defined())
    std::copy_n(query, item.width, queries_.data_ptr<float>() + row * item.width);
}

void AttentiveForward::step(int64_t step, const Bundle& bundle, const ThreadTeam& team) const {
  const StepPart part{bundle, bundle.rows(layer_.schedule.active(step))};
  if (part.count <= 0) return;
  const ThreadTeam::Range mine = team.range(part.count);
  multiply(step, part, team);
  team.wait();
  for (int64_t i = mine.begin; i < mine.end; ++i) cell(bundle.rank(i), step);
  if (!packs_.query.empty()) {
    team.wait();
    const float* bias =
        packs_.query_bias.defined() ? packs_.query_bias.const_data_ptr<float>() : nullptr;
    multiply_step(lines_of(query_operand_, part), packs_.query[0], bias, lines_to(query_, part),
                  team);
    team.wait();
  }
  for (int64_t i = mine.begin; i < mine.end; ++i) attend(bundle.rank(i), step);
  team.wait();
}

}  // namespace

AttentiveResult run_forward(const AttentiveLayer& layer, const AttentivePacks& packs,
                            const at::Tensor& x, bool keep) {
  AttentiveForward pass(layer, packs, x, keep);
  pass.start();
  run_steps(layer.schedule, layer.step_weights(), Time::kForward,
            [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
              pass.step(step, bundle, team);
            });
  return pass.result();
}

}  // namespace stretto::kernels
