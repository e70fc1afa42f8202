#include "models/causal_recurrent_steps.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "data/batch.h"
#include "models/packed.h"

namespace stretto::models {
namespace {

/// B prompts of T tokens each, [B, T], as packed rows.
nn::PackedRows packed_prompts(const at::Tensor& ids) {
  const int64_t prompts = ids.size(0), length = ids.size(1);
  nn::PackedRows rows;
  rows.ids = ids.reshape({-1});
  rows.positions = at::arange(length, ids.options()).repeat({prompts});
  rows.offsets = {.values = at::arange(prompts + 1, ids.options().dtype(at::kInt)) * length,
                  .max_length = length};
  return rows;
}

}  // namespace

CausalRecurrentSteps::CausalRecurrentSteps(std::shared_ptr<CausalRecurrent> model, int64_t sources,
                                           int64_t lanes_per_source)
    : model_(std::move(model)),
      lanes_(sources * lanes_per_source),
      states_(model_->layers_.size()) {
  for (const RecurrentLayer& layer : model_->layers_) {
    layers_.emplace_back(layer->weights_or_codes(), model_->part_.cell_at_rest());
  }
}

at::Tensor CausalRecurrentSteps::step(const at::Tensor& ids) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(ids.dim() == 1 && ids.size(0) == lanes_, "[lstm] a step needs a token of each of ",
              lanes_, " lanes, got ", ids.sizes());
  began_ = true;
  at::Tensor h = model_->embedding_.forward(ids);
  for (size_t i = 0; i < layers_.size(); ++i) {
    states_[i] = layers_[i](model_->layers_[i]->gates(h), states_[i]);
    h = nn::adapted(model_->adapters_[i], states_[i].h);
  }
  return h;
}

at::Tensor CausalRecurrentSteps::prefill(const at::Tensor& ids, int64_t lanes_per_source) {
  TORCH_CHECK(ids.dim() == 2, "[lstm] prompts must be [sources, tokens], got ", ids.sizes());
  return read(packed_prompts(ids), lanes_per_source);
}

at::Tensor CausalRecurrentSteps::prefill_packed(const decoding::PackedPrompts& prompts,
                                                int64_t lanes_per_source) {
  data::PackedTokens tokens;
  auto from = prompts.ids.begin();
  for (const int64_t length : prompts.lengths) {
    tokens.append(std::vector<int64_t>(from, from + length));
    from += length;
  }
  return read(pack(tokens, nullptr, model_->device()), lanes_per_source);
}

at::Tensor CausalRecurrentSteps::read(const nn::PackedRows& prompts, int64_t lanes_per_source) {
  const torch::NoGradGuard no_grad;
  const at::Tensor ends = prompts.offsets.values.narrow(0, 1, prompts.offsets.values.size(0) - 1);
  TORCH_CHECK(!began_, "[lstm] prompts come before the first step");
  TORCH_CHECK(ends.size(0) * lanes_per_source == lanes_, "[lstm] ", ends.size(0), " prompts of ",
              lanes_per_source, " lanes each do not fit ", lanes_, " lanes");
  TORCH_CHECK(at::diff(prompts.offsets.values).gt(0).all().item<bool>(),
              "[lstm] a prompt has at least one token");
  began_ = true;
  const CausalRecurrentPass pass = model_->forward(prompts, {}, {});
  std::vector<at::Tensor> of_lanes;
  for (const at::Tensor& state : pass.state) {
    of_lanes.push_back(state.repeat_interleave(lanes_per_source, 0));
  }
  states_ = model_->states_of(of_lanes, lanes_);
  return pass.rows.index_select(0, ends.to(at::kLong) - 1).repeat_interleave(lanes_per_source, 0);
}

void CausalRecurrentSteps::reorder(const std::vector<int64_t>& parents) {
  const torch::NoGradGuard no_grad;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < lanes_, "[lstm] reorder: lane ", parent, " of ", lanes_);
  }
  lanes_ = static_cast<int64_t>(parents.size());
  const at::Tensor from = at::tensor(parents, at::kLong).to(model_->device());
  for (kernels::RecurrentState& state : states_) {
    if (state.h.defined()) state.h = state.h.index_select(0, from);
    if (state.c.defined()) state.c = state.c.index_select(0, from);
  }
}

}  // namespace stretto::models
