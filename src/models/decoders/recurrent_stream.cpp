#include "models/decoders/recurrent_stream.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "kernels/offsets.h"
#include "models/lanes.h"

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

void choose_rows(at::Tensor& rows, const at::Tensor& from) {
  if (rows.defined()) rows = rows.index_select(0, from);
}

}  // namespace

RecurrentStreamDecoder::RecurrentStreamDecoder(std::shared_ptr<RecurrentDecoder> decoder)
    : decoder_(std::move(decoder)),
      first_(decoder_->attentive_weights_or_codes(), decoder_->part_.cell_at_rest(),
             decoder_->attention_->kind()),
      states_(decoder_->layers_.size()) {
  for (size_t i = 1; i < decoder_->layers_.size(); ++i) {
    upper_.emplace_back(decoder_->layers_[i]->weights_or_codes(), decoder_->part_.cell_at_rest());
  }
}

void RecurrentStreamDecoder::set_offsets() {
  memory_.offsets = kernels::offsets_of(lengths_, memory_.keys.device());
  query_offsets_ = kernels::offsets_of(lanes_, memory_.keys.device());
  source_ = first_.prepare(memory_);
}

void RecurrentStreamDecoder::enter(const Encoded& memory) {
  const torch::NoGradGuard no_grad;
  const kernels::Memory entering = decoder_->attention_->memory(memory);
  const std::vector<int64_t> lengths = lengths_of(memory.rows.offsets);
  const std::vector<kernels::RecurrentState> initial = decoder_->initial_states(memory);
  const auto added = std::ssize(lengths);
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].h = with_new_lanes(states_[i].h, num_lanes_, initial[i].h, added);
    states_[i].c = with_new_lanes(states_[i].c, num_lanes_, initial[i].c, added);
  }
  context_ = with_new_lanes(context_, num_lanes_, {}, added);
  const bool is_alone = lengths_.empty();
  memory_.keys = is_alone ? entering.keys : at::cat({memory_.keys, entering.keys});
  memory_.values = is_alone ? entering.values : at::cat({memory_.values, entering.values});
  lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
  lanes_.insert(lanes_.end(), lengths.size(), 1);
  num_lanes_ += added;
  set_offsets();
}

at::Tensor RecurrentStreamDecoder::step(const at::Tensor& ids) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(ids.dim() == 1 && ids.size(0) == num_lanes_, "[lstm] a step of ", num_lanes_,
              " lanes, got ids ", ids.sizes());
  const at::Tensor embedded = decoder_->embedding_.forward(ids);
  const at::Tensor gates = decoder_->layers_[0]->gates(embedded);
  const kernels::AttentiveState now =
      first_(gates, {state(0).h, state(0).c, context_}, source_, query_offsets_).state;
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

void RecurrentStreamDecoder::reorder(const std::vector<int64_t>& parents) {
  const torch::NoGradGuard no_grad;
  std::vector<size_t> sources;  // of each lane
  for (size_t i = 0; i < lanes_.size(); ++i) {
    sources.insert(sources.end(), static_cast<size_t>(lanes_[i]), i);
  }
  std::vector<int64_t> lanes(lanes_.size(), 0);
  size_t last = 0;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < num_lanes_, "[lstm] reorder: lane ", parent, " of ",
                num_lanes_);
    const size_t source = sources[static_cast<size_t>(parent)];
    TORCH_CHECK(source >= last, "[lstm] reorder: lanes must stay in the order of their sources");
    last = source;
    ++lanes[source];
  }
  const at::Tensor from = at::tensor(parents, at::kLong).to(query_offsets_.values.device());
  for (kernels::RecurrentState& one : states_) {
    choose_rows(one.h, from);
    choose_rows(one.c, from);
  }
  choose_rows(context_, from);
  num_lanes_ = std::ssize(parents);
  if (lanes != lanes_) leave(lanes);
}

// Sources without a lane leave, and the rows of their memory.
void RecurrentStreamDecoder::leave(const std::vector<int64_t>& lanes) {
  std::vector<int64_t> rows, kept_lengths, kept_lanes;
  int64_t first = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] > 0) {
      for (int64_t row = 0; row < lengths_[i]; ++row) rows.push_back(first + row);
      kept_lengths.push_back(lengths_[i]);
      kept_lanes.push_back(lanes[i]);
    }
    first += lengths_[i];
  }
  const bool some_left = kept_lengths.size() < lengths_.size();
  lengths_ = std::move(kept_lengths);
  lanes_ = std::move(kept_lanes);
  if (lengths_.empty()) {  // the next ones find nothing
    states_.assign(states_.size(), {});
    context_ = at::Tensor();
    return;
  }
  if (some_left) {
    const at::Tensor index = at::tensor(rows, at::kLong).to(memory_.keys.device());
    choose_rows(memory_.keys, index);
    choose_rows(memory_.values, index);
    set_offsets();
  } else {
    query_offsets_ = kernels::offsets_of(lanes_, memory_.keys.device());
  }
}

}  // namespace stretto::models
