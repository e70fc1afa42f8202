#include "models/decoders/transformer_step.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "kernels/gemm/large_pages.h"
#include "models/memory.h"

namespace stretto::models {
namespace {

constexpr int64_t kStepsPerChunk = 32;

/// `cache` [steps, L, E] with room for `steps` more; the new rows are not set. What nobody has
/// written takes no memory yet.
at::Tensor grown(const at::Tensor& cache, int64_t steps) {
  at::Tensor larger = kernels::gemm::in_large_pages(
      {cache.size(0) + steps, cache.size(1), cache.size(2)}, cache.options());
  larger.narrow(0, 0, cache.size(0)).copy_(cache);
  return larger;
}

}  // namespace

TransformerStepDecoder::TransformerStepDecoder(std::shared_ptr<TransformerDecoder> decoder,
                                               const Encoded& memory, int64_t lanes_per_source)
    : decoder_(std::move(decoder)), lanes_(memory, lanes_per_source) {
  const torch::NoGradGuard no_grad;
  for (const TransformerDecoderLayer& layer : decoder_->layers_) {
    // Caches are fp32, whatever the arithmetic of products.
    const at::Tensor kv = decoder_->attends_
                              ? kernels::widened(keys_and_values(*layer->cross_attention, memory))
                              : at::Tensor();
    const nn::SelfAttentionImpl& self = *layer->self_attention;
    const at::Tensor none = kernels::widened(
        at::empty({0, lanes_.size(), self.options.kv_width()}, self.qkv->weight.options()));
    caches_.push_back({.cross_kv = kv, .k = none, .v = at::empty_like(none)});
  }
  lineage_ = at::empty({lanes_.size(), 0}, at::dtype(at::kInt).device(lanes_.device()));
  begins_.assign(static_cast<size_t>(lanes_.size()), 0);
  set_slots();
  for (const TransformerDecoderLayer& layer : decoder_->layers_) {
    const int64_t window = layer->self_attention->options.limits.window;
    if (window == 0) return;  // it reads all steps
    window_ = std::max(window_, window);
  }
  has_window_ = true;
}

int64_t TransformerStepDecoder::cached_numbers() const {
  int64_t sum = 0;
  for (const LayerCache& cache : caches_) {
    sum += cache.k.numel() + cache.v.numel();
    if (cache.cross_kv.defined()) sum += cache.cross_kv.numel();
  }
  return sum;
}

void TransformerStepDecoder::set_slots() {
  slots_ = at::arange(lanes_.size(), at::dtype(at::kInt).device(lanes_.device()));
}

void TransformerStepDecoder::set_first() {
  origins_ = first_ = at::Tensor();
  if (std::ranges::all_of(begins_, [](int64_t begin) { return begin == 0; })) return;
  origins_ = at::tensor(begins_, at::kLong).to(lanes_.device());
  if (std::ranges::any_of(begins_, [](int64_t begin) { return begin > 0; })) {
    first_ = origins_.clamp_min(0).to(at::kInt);
  }
}

int64_t TransformerStepDecoder::first_step() const {
  return begins_.empty() ? 0 : *std::ranges::min_element(begins_);
}

int64_t TransformerStepDecoder::unread_steps() const {
  const int64_t behind_windows =
      has_window_ ? std::min(time_ - window_ + 1, time_ - 1) : int64_t{0};
  return std::max({first_step(), behind_windows, int64_t{0}});
}

void TransformerStepDecoder::forget() {
  if (has_window_ && time_ >= 2 * window_ + kStepsPerChunk) copy_history();
}

void TransformerStepDecoder::make_room(int64_t steps) {
  const int64_t room = lineage_.size(1);
  if (time_ + steps <= room) return;
  const int64_t missing = std::max(time_ + steps - room, room / 2);
  const int64_t more = (missing + kStepsPerChunk - 1) / kStepsPerChunk * kStepsPerChunk;
  for (LayerCache& cache : caches_) {
    cache.k = grown(cache.k, more);
    cache.v = grown(cache.v, more);
  }
  lineage_ = at::cat({lineage_, at::zeros({lineage_.size(0), more}, lineage_.options())}, 1);
  most_cache_bytes_ = std::max(most_cache_bytes_, cached_numbers() * int64_t{sizeof(float)});
  bias_ = bias_of(decoder_->distance_bias_, lineage_.size(1), caches_.front().k);
}

at::Tensor TransformerStepDecoder::step(const at::Tensor& ids) {
  make_room(1);
  lineage_.select(1, time_).copy_(slots_);
  positions_ = at::full_like(ids, time_);
  if (origins_.defined()) positions_ -= origins_;
  // Positions of models that have a last one count for each lane.
  const int64_t longest = time_ + 1 - first_step();

  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(ids, positions_, longest, {});
  for (size_t i = 0; i < decoder_->layers_.size(); ++i) {
    const TransformerDecoderLayerImpl& layer = *decoder_->layers_[i];
    const DecoderAttention attention{
        .self = [&](const at::Tensor& h) { return attend_self(layer, caches_[i], h); },
        .cross =
            [&](const at::Tensor& h) {
              return attend_cross(layer, caches_[i], h, lanes_.query_offsets());
            }};
    x = layer.forward(x, attention, {decoder_->options_, no_dropout, 0});
  }
  ++time_;
  forget();
  return decoder_->shell_.finish(x);
}

at::Tensor TransformerStepDecoder::prefill(const at::Tensor& ids, int64_t lanes_per_source) {
  TORCH_CHECK(ids.dim() == 2 && ids.size(1) > 0 && ids.size(0) * lanes_per_source == lanes_.size(),
              "[transformer] prefill: prompts must be [sources, tokens] of ", lanes_.size(),
              " lanes, ", lanes_per_source, " for each source, got ", ids.sizes());
  return take(ids.reshape({-1}),
              std::vector<int64_t>(static_cast<size_t>(ids.size(0)), ids.size(1)),
              lanes_per_source);
}

at::Tensor TransformerStepDecoder::prefill_packed(const decoding::PackedPrompts& prompts,
                                                  int64_t lanes_per_source) {
  TORCH_CHECK(prompts.size() * lanes_per_source == lanes_.size() &&
                  std::ranges::all_of(prompts.lengths, [](int64_t length) { return length > 0; }),
              "[transformer] prefill_packed: prompts with tokens for ", lanes_.size(), " lanes, ",
              lanes_per_source, " for each source, got ", prompts.size());
  return take(at::tensor(prompts.ids, at::kLong).to(lanes_.device()), prompts.lengths,
              lanes_per_source);
}

at::Tensor TransformerStepDecoder::take(const at::Tensor& ids, const std::vector<int64_t>& lengths,
                                        int64_t lanes_per_source) {
  TORCH_CHECK(time_ == 0, "[transformer] prefill begins a decoding, and ", time_,
              " steps were taken");
  const int64_t longest = *std::ranges::max_element(lengths);
  std::vector<int64_t> positions, places, last;
  std::vector<int32_t> bounds{0};
  begins_.clear();
  for (size_t source = 0; source < lengths.size(); ++source) {
    // All lanes of a source find its prompt in the slot of the first.
    const int64_t slot = static_cast<int64_t>(source) * lanes_per_source;
    const int64_t begin = longest - lengths[source];
    begins_.insert(begins_.end(), static_cast<size_t>(lanes_per_source), begin);
    for (int64_t t = 0; t < lengths[source]; ++t) {
      positions.push_back(t);
      places.push_back((begin + t) * lanes_.size() + slot);
    }
    bounds.push_back(static_cast<int32_t>(positions.size()));
    last.push_back(std::ssize(positions) - 1);
  }
  const auto on_device = [&](const auto& numbers, at::ScalarType type) {
    return at::tensor(numbers, type).to(lanes_.device());
  };
  Prompts prompts{.rows = {},
                  .places = on_device(places, at::kLong),
                  .last = on_device(last, at::kLong),
                  .bias = {}};
  prompts.rows.ids = ids;
  prompts.rows.positions = on_device(positions, at::kLong);
  prompts.rows.offsets = {.values = on_device(bounds, at::kInt), .max_length = longest};
  make_room(longest);
  const at::Tensor first = slots_.div(lanes_per_source, "trunc").mul(lanes_per_source);
  lineage_.narrow(1, 0, longest).copy_(first.unsqueeze(1));
  set_first();

  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(prompts.rows, {});
  prompts.bias = bias_of(decoder_->distance_bias_, longest, x);
  for (size_t i = 0; i < decoder_->layers_.size(); ++i) {
    const TransformerDecoderLayerImpl& layer = *decoder_->layers_[i];
    const DecoderAttention attention{
        .self = [&](const at::Tensor& h) { return attend_prompts(layer, caches_[i], h, prompts); },
        .cross =
            [&](const at::Tensor& h) {
              return attend_cross(layer, caches_[i], h, prompts.rows.offsets);
            }};
    x = layer.forward(x, attention, {decoder_->options_, no_dropout, 0});
  }
  time_ = longest;
  const at::Tensor rows = x.index_select(0, prompts.last);
  return decoder_->shell_.finish(rows.repeat_interleave(lanes_per_source, 0));
}

at::Tensor TransformerStepDecoder::attend_prompts(const TransformerDecoderLayerImpl& layer,
                                                  LayerCache& cache, const at::Tensor& x,
                                                  const Prompts& prompts) {
  const at::Tensor projected = layer.self_attention->project(x, prompts.rows.positions);
  const std::vector<at::Tensor> parts = layer.self_attention->split(kernels::widened(projected));
  const auto keep = [&](const at::Tensor& rows, at::Tensor& kept) {
    kept.flatten(0, 1).index_copy_(0, prompts.places, rows.to(kept.scalar_type()));
  };
  keep(parts[1], cache.k);
  keep(parts[2], cache.v);
  return layer.self_attention->out->forward(layer.self_attention->attend_projected(
      projected, prompts.rows, /*causal=*/true, /*dropout=*/{}, prompts.bias));
}

at::Tensor TransformerStepDecoder::attend_self(const TransformerDecoderLayerImpl& layer,
                                               LayerCache& cache, const at::Tensor& x) {
  const std::vector<at::Tensor> parts =
      layer.self_attention->split(kernels::widened(layer.self_attention->project(x, positions_)));
  return layer.self_attention->out->forward(kernels::decode_self_attention(
      parts[0].contiguous(), parts[1].contiguous(), parts[2].contiguous(), cache.k, cache.v,
      lineage_, time_, decoder_->options_.stack.num_heads,
      layer.self_attention->bias_of(parts[0], bias_), first_,
      layer.self_attention->options.limits));
}

at::Tensor TransformerStepDecoder::attend_cross(const TransformerDecoderLayerImpl& layer,
                                                const LayerCache& cache, const at::Tensor& x,
                                                const kernels::Offsets& queries) const {
  return layer.cross_attention->out->forward(
      kernels::cross_attention(layer.cross_attention->q->forward(x), cache.cross_kv,
                               {.query_offsets = queries,
                                .key_offsets = lanes_.key_offsets(),
                                .num_heads = decoder_->options_.stack.num_heads,
                                .dropout = {},
                                .num_kv_heads = decoder_->options_.stack.num_kv_heads}));
}

void TransformerStepDecoder::reorder(const std::vector<int64_t>& parents) {
  const auto change = lanes_.reorder(parents);
  lineage_ = lineage_.index_select(0, change.parents);
  std::vector<int64_t> begins;
  for (const int64_t parent : parents) begins.push_back(begins_[static_cast<size_t>(parent)]);
  if (begins != begins_) {
    begins_ = std::move(begins);
    set_first();
  }
  if (!change.lanes_left) return;
  if (change.rows.defined() && decoder_->attends_) {
    for (LayerCache& cache : caches_) cache.cross_kv = cache.cross_kv.index_select(0, change.rows);
  }
  set_slots();
  // Slots of lanes that have left cost memory and nothing else, copying costs time.
  if (lanes_.size() * 4 <= caches_.front().k.size(1) * 3) copy_history();
}

void TransformerStepDecoder::copy_history() {
  const int64_t lanes = lanes_.size(), room = lineage_.size(1);
  // Steps that nothing reads any more are given up.
  const int64_t unused = unread_steps(), time = time_ - unused;
  const at::Tensor history = lineage_.narrow(1, unused, time).to(at::kLong).t();  // [time, lanes]
  for (LayerCache& cache : caches_) {
    for (at::Tensor* rows : {&cache.k, &cache.v}) {
      const at::Tensor steps = at::arange(unused, time_, history.options()) * rows->size(1);
      const at::Tensor index = (history + steps.unsqueeze(1)).reshape({-1});
      at::Tensor narrow =
          kernels::gemm::in_large_pages({room, lanes, rows->size(2)}, rows->options());
      narrow.narrow(0, 0, time)
          .copy_(rows->flatten(0, 1).index_select(0, index).view({time, lanes, rows->size(2)}));
      *rows = narrow;
    }
  }
  time_ = time;
  for (int64_t& begin : begins_) begin -= unused;
  set_first();
  lineage_ = slots_.unsqueeze(1).expand({lanes, room}).contiguous();
}

}  // namespace stretto::models
