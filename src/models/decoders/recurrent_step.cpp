#include "models/decoders/recurrent_step.h"

#include <ATen/ATen.h>

#include <utility>

namespace stretto::models {
namespace {

/// Rows of lanes from rows of sources, or of lanes from what they were; none stays none.
void take_rows(at::Tensor& rows, const at::Tensor& from) {
  if (rows.defined()) rows = rows.index_select(0, from);
}

}  // namespace

RecurrentStepDecoder::RecurrentStepDecoder(std::shared_ptr<RecurrentDecoder> decoder,
                                           const Encoded& memory, int64_t lanes_per_source)
    : decoder_(std::move(decoder)),
      lanes_(memory, lanes_per_source),
      first_(decoder_->attentive_weights_or_codes(), decoder_->part_.cell_at_rest(),
             decoder_->attention_->kind()),
      memory_(decoder_->attention_->memory(memory)),
      source_(first_.prepare(memory_)),
      states_(decoder_->initial_states(memory)) {
  for (size_t i = 1; i < decoder_->layers_.size(); ++i) {
    upper_.emplace_back(decoder_->layers_[i]->weights_or_codes(), decoder_->part_.cell_at_rest());
  }
  const at::Tensor sources = at::tensor(lanes_.sources(), at::kLong).to(lanes_.device());
  for (kernels::RecurrentState& state : states_) {
    take_rows(state.h, sources);
    take_rows(state.c, sources);
  }
}

at::Tensor RecurrentStepDecoder::context_before(const at::Tensor& like) const {
  return context_.defined() ? context_ : at::zeros_like(like);
}

at::Tensor RecurrentStepDecoder::step(const at::Tensor& ids) {
  const at::Tensor embedded = decoder_->embedding_.forward(ids);
  const at::Tensor gates = decoder_->layers_[0]->gates(embedded);
  const kernels::AttentiveState now =
      first_(gates, {state(0).h, state(0).c, context_}, source_, lanes_.query_offsets()).state;
  state(0) = {now.h, now.c};
  const at::Tensor given = decoder_->context_is_new_ ? now.context : context_before(now.context);
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
  return decoder_->run_upper_layers(embedded, now.h, now.context, given, upper);
}

void RecurrentStepDecoder::reorder(const std::vector<int64_t>& parents) {
  const Lanes::Change change = lanes_.reorder(parents);
  for (kernels::RecurrentState& state : states_) {
    take_rows(state.h, change.parents);
    take_rows(state.c, change.parents);
  }
  take_rows(context_, change.parents);
  if (!change.rows.defined()) return;
  take_rows(memory_.keys, change.rows);
  take_rows(memory_.values, change.rows);
  memory_.offsets = lanes_.key_offsets();
  source_ = first_.prepare(memory_);
}

}  // namespace stretto::models
