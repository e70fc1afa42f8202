#include "models/decoders/transformer_step.h"

#include <utility>

#include "models/memory.h"

namespace stretto::models {
namespace {

constexpr int64_t kStepsPerChunk = 32;

/// `cache` [steps, L, E] with room for `steps` more; the new rows are not set.
at::Tensor grown(const at::Tensor& cache, int64_t steps) {
  return at::cat({cache, at::empty({steps, cache.size(1), cache.size(2)}, cache.options())}, 0);
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
  set_slots();
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

void TransformerStepDecoder::make_room(int64_t steps) {
  const int64_t missing = time_ + steps - lineage_.size(1);
  if (missing <= 0) return;
  const int64_t more = (missing + kStepsPerChunk - 1) / kStepsPerChunk * kStepsPerChunk;
  for (LayerCache& cache : caches_) {
    cache.k = grown(cache.k, more);
    cache.v = grown(cache.v, more);
  }
  lineage_ = at::cat({lineage_, at::zeros({lineage_.size(0), more}, lineage_.options())}, 1);
  bias_ = bias_of(decoder_->distance_bias_, lineage_.size(1), caches_.front().k);
}

at::Tensor TransformerStepDecoder::step(const at::Tensor& ids) {
  make_room(1);
  lineage_.select(1, time_).copy_(slots_);
  positions_ = at::full_like(ids, time_);

  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(ids, positions_, time_ + 1, {});
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
  return decoder_->shell_.finish(x);
}

at::Tensor TransformerStepDecoder::prefill(const at::Tensor& ids, int64_t lanes_per_source) {
  TORCH_CHECK(time_ == 0, "[transformer] prefill begins a decoding, and ", time_,
              " steps were taken");
  TORCH_CHECK(ids.dim() == 2 && ids.size(1) > 0 && ids.size(0) * lanes_per_source == lanes_.size(),
              "[transformer] prefill: prompts must be [sources, tokens] of ", lanes_.size(),
              " lanes, ", lanes_per_source, " for each source, got ", ids.sizes());
  Prompts prompts{.rows = {},
                  .sources = ids.size(0),
                  .length = ids.size(1),
                  .lanes_per_source = lanes_per_source,
                  .bias = {}};
  const auto counted = [&](int64_t end) { return at::arange(end, ids.options()); };
  prompts.rows.ids = ids.reshape({-1});
  prompts.rows.positions = counted(prompts.length).repeat({prompts.sources});
  prompts.rows.offsets = {.values = (counted(prompts.sources + 1) * prompts.length).to(at::kInt),
                          .max_length = prompts.length};
  make_room(prompts.length);
  // All lanes of a source find its prompt in the slot of the first.
  const at::Tensor first = slots_.div(lanes_per_source, "trunc").mul(lanes_per_source);
  lineage_.narrow(1, 0, prompts.length).copy_(first.unsqueeze(1));

  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(prompts.rows, {});
  prompts.bias = bias_of(decoder_->distance_bias_, prompts.length, x);
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
  time_ = prompts.length;
  const at::Tensor last = x.view({prompts.sources, prompts.length, -1}).select(1, time_ - 1);
  return decoder_->shell_.finish(last.repeat_interleave(lanes_per_source, 0));
}

at::Tensor TransformerStepDecoder::attend_prompts(const TransformerDecoderLayerImpl& layer,
                                                  LayerCache& cache, const at::Tensor& x,
                                                  const Prompts& prompts) {
  const at::Tensor projected = layer.self_attention->project(x, prompts.rows.positions);
  const std::vector<at::Tensor> parts = layer.self_attention->split(kernels::widened(projected));
  const auto keep = [&](const at::Tensor& rows, at::Tensor& kept) {
    kept.narrow(0, 0, prompts.length)
        .slice(1, 0, lanes_.size(), prompts.lanes_per_source)
        .copy_(rows.reshape({prompts.sources, prompts.length, -1}).transpose(0, 1));
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
      layer.self_attention->bias_of(parts[0], bias_), layer.self_attention->options.limits));
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
  const at::Tensor history = lineage_.narrow(1, 0, time_).to(at::kLong).t();  // [time, lanes]
  for (LayerCache& cache : caches_) {
    for (at::Tensor* rows : {&cache.k, &cache.v}) {
      const at::Tensor steps = at::arange(time_, history.options()) * rows->size(1);
      const at::Tensor index = (history + steps.unsqueeze(1)).reshape({-1});
      at::Tensor narrow = at::empty({room, lanes, rows->size(2)}, rows->options());
      narrow.narrow(0, 0, time_)
          .copy_(rows->flatten(0, 1).index_select(0, index).view({time_, lanes, rows->size(2)}));
      *rows = narrow;
    }
  }
  lineage_ = slots_.unsqueeze(1).expand({lanes, room}).contiguous();
}

}  // namespace stretto::models
