#include "models/speech/attention_steps.h"

#include <ATen/ATen.h>

#include <utility>

namespace stretto::models {
namespace {

/// None stays none.
void take_lanes(at::Tensor& rows, const at::Tensor& from) {
  if (rows.defined()) rows = rows.index_select(0, from);
}

}  // namespace

AttentionSteps::AttentionSteps(std::shared_ptr<AttentionDecoder> decoder, const Encoded& memory,
                               int64_t lanes_per_source)
    : decoder_(std::move(decoder)),
      lanes_(memory, lanes_per_source),
      states_(decoder_->layers_.size()) {
  const torch::NoGradGuard no_grad;
  keys_ = decoder_->attention_->keys(memory);
  values_ = memory.attended();
  for (size_t i = 1; i < decoder_->layers_.size(); ++i) {
    upper_.emplace_back(decoder_->layers_[i]->weights_or_codes(), decoder_->part_.cell_at_rest());
  }
  set_rows();
}

void AttentionSteps::set_rows() {
  const AttendingLanes lanes{.lengths = lengths_of(lanes_.key_offsets()),
                             .sources = lanes_.sources()};
  rows_ = attended_rows(keys_, values_, lanes);
  bounds_.assign(1, 0);
  for (const int64_t source : lanes.sources) {
    bounds_.push_back(bounds_.back() + lanes.lengths[static_cast<size_t>(source)]);
  }
}

at::Tensor AttentionSteps::rows_of(const std::vector<int64_t>& lanes) const {
  std::vector<int64_t> rows;
  for (const int64_t lane : lanes) {
    const auto at_lane = static_cast<size_t>(lane);
    for (int64_t row = bounds_[at_lane]; row < bounds_[at_lane + 1]; ++row) rows.push_back(row);
  }
  return at::tensor(rows, at::kLong).to(lanes_.device());
}

at::Tensor AttentionSteps::step(const at::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(tokens.dim() == 1 && tokens.size(0) == lanes_.size(),
              "[attention_decoder] step: tokens must be [", lanes_.size(), "], got ",
              tokens.sizes());
  const auto& layers = decoder_->layers_;
  const at::Tensor gates = layers[0]->gates(decoder_->embed(tokens.to(lanes_.device())));
  states_[0] = decoder_->first_step(gates, states_[0], context_);
  const LocationAttentionImpl::Result result =
      decoder_->attention_->forward(states_[0].h, rows_, seen_);
  seen_ = decoder_->attention_->seen_after(result.weights, seen_);
  context_ = result.context;
  at::Tensor x = states_[0].h;
  for (size_t i = 1; i < layers.size(); ++i) {
    states_[i] = upper_[i - 1](layers[i]->gates(at::cat({x, context_}, 1)), states_[i]);
    x = states_[i].h;
  }
  return at::log_softmax(decoder_->logits(x, context_, {}), 1).to(at::kFloat);
}

void AttentionSteps::reorder(const std::vector<int64_t>& parents) {
  const torch::NoGradGuard no_grad;
  const std::vector<int64_t> sources = lanes_.sources();
  const Lanes::Change change = lanes_.reorder(parents);
  for (kernels::RecurrentState& state : states_) {
    take_lanes(state.h, change.parents);
    take_lanes(state.c, change.parents);
  }
  take_lanes(context_, change.parents);
  take_lanes(seen_, rows_of(parents));
  if (change.rows.defined()) {
    take_lanes(keys_, change.rows);
    take_lanes(values_, change.rows);
  }
  if (change.rows.defined() || lanes_.sources() != sources) set_rows();
}

}  // namespace stretto::models
