#include "models/decoders/recurrent_lanes.h"

#include <ATen/ATen.h>

#include <utility>

namespace stretto::models {
namespace {

/// Rows of lanes with those of new lanes behind them; undefined ones are zero.
at::Tensor with_new_lanes(const at::Tensor& rows, int64_t lanes, const at::Tensor& entering,
                          int64_t new_lanes) {
  if (lanes == 0 || (!rows.defined() && !entering.defined())) return entering;
  const at::Tensor& like = rows.defined() ? rows : entering;
  const auto or_zero = [&](const at::Tensor& some, int64_t count) {
    return some.defined() ? some : at::zeros({count, like.size(1)}, like.options());
  };
  return at::cat({or_zero(rows, lanes), or_zero(entering, new_lanes)});
}

void take_rows(at::Tensor& rows, const at::Tensor& from) {
  if (rows.defined()) rows = rows.index_select(0, from);
}

}  // namespace

RecurrentLanes::RecurrentLanes(std::shared_ptr<RecurrentDecoder> decoder)
    : decoder_(std::move(decoder)),
      first_(decoder_->attentive_weights_or_codes(), decoder_->part_.cell_at_rest(),
             decoder_->attention_->kind()),
      states_(decoder_->layers_.size()) {
  for (size_t i = 1; i < decoder_->layers_.size(); ++i) {
    upper_.emplace_back(decoder_->layers_[i]->weights_or_codes(), decoder_->part_.cell_at_rest());
  }
}

void RecurrentLanes::set_offsets(const kernels::Offsets& key_offsets) {
  memory_.offsets = key_offsets;
  source_ = first_.prepare(memory_);
}

void RecurrentLanes::enter(const Encoded& memory, const kernels::Offsets& key_offsets) {
  kernels::Memory entering = decoder_->attention_->memory(memory);
  const std::vector<kernels::RecurrentState> initial = decoder_->initial_states(memory);
  const int64_t added = memory.rows.offsets.values.numel() - 1;
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].h = with_new_lanes(states_[i].h, size_, initial[i].h, added);
    states_[i].c = with_new_lanes(states_[i].c, size_, initial[i].c, added);
  }
  context_ = with_new_lanes(context_, size_, {}, added);
  if (size_ > 0) {
    entering.keys = at::cat({memory_.keys, entering.keys});
    entering.values = at::cat({memory_.values, entering.values});
  }
  memory_ = std::move(entering);
  size_ += added;
  set_offsets(key_offsets);
}

at::Tensor RecurrentLanes::step(const at::Tensor& ids, const kernels::Offsets& query_offsets) {
  const at::Tensor embedded = decoder_->embedding_.forward(ids);
  const at::Tensor gates = decoder_->layers_[0]->gates(embedded);
  const kernels::AttentiveState now =
      first_(gates, {state(0).h, state(0).c, context_}, source_, query_offsets).state;
  state(0) = {now.h, now.c};
  const at::Tensor before = context_.defined() ? context_ : at::zeros_like(now.context);
  context_ = now.context;
  const RecurrentDecoder::UpperLayers upper{
      .drop = [](const at::Tensor& x, int64_t /*layer*/) { return x; },
      .run =
          [&](const at::Tensor& x, int64_t layer) {
            const auto at_layer = static_cast<size_t>(layer);
            state(layer) =
                upper_[at_layer - 1](decoder_->layers_[at_layer]->gates(x), state(layer));
            return state(layer).h;
          }};
  return decoder_->run_upper_layers(embedded, now.h, now.context,
                                    decoder_->context_is_new_ ? now.context : before, upper);
}

void RecurrentLanes::take_lanes(const at::Tensor& parents) {
  for (kernels::RecurrentState& one : states_) {
    take_rows(one.h, parents);
    take_rows(one.c, parents);
  }
  take_rows(context_, parents);
  size_ = parents.size(0);
}

void RecurrentLanes::take_memory(const at::Tensor& rows, const kernels::Offsets& key_offsets) {
  take_rows(memory_.keys, rows);
  take_rows(memory_.values, rows);
  set_offsets(key_offsets);
}

}  // namespace stretto::models
