#include "models/transformer_decoding.h"

#include <algorithm>
#include <numeric>

#include "models/packed.h"

namespace stretto::models {
namespace {

constexpr int64_t kStepsPerChunk = 32;

kernels::Offsets offsets_of(const std::vector<int64_t>& lengths, c10::Device device) {
  std::vector<int32_t> bounds{0};
  int64_t longest = 0;
  for (const int64_t length : lengths) {
    bounds.push_back(bounds.back() + static_cast<int32_t>(length));
    longest = std::max(longest, length);
  }
  return {.values = at::tensor(bounds, at::kInt).to(device), .max_length = longest};
}

/// `cache` [steps, L, D] with room for `steps` more; the new rows are not set.
at::Tensor grown(const at::Tensor& cache, int64_t steps) {
  return at::cat({cache, at::empty({steps, cache.size(1), cache.size(2)}, cache.options())}, 0);
}

}  // namespace

TransformerStepModel::TransformerStepModel(std::shared_ptr<Transformer> model,
                                           const data::PackedTokens& src, int64_t lanes_per_src)
    : model_(std::move(model)) {
  const torch::NoGradGuard no_grad;
  encode(src);
  for (int64_t i = 0; i < src.num_sequences(); ++i) {
    src_lengths_.push_back(src.length(i));
    lane_sources_.insert(lane_sources_.end(), lanes_per_src, i);
  }
  const auto lanes = static_cast<int64_t>(lane_sources_.size());
  for (LayerCache& cache : caches_) {
    cache.k = at::empty({0, lanes, model_->options().d_model}, cache.cross_kv.options());
    cache.v = at::empty_like(cache.k);
  }
  lineage_ = at::empty({lanes, 0}, at::dtype(at::kInt).device(model_->device()));
  set_sources();
}

void TransformerStepModel::encode(const data::PackedTokens& src) {
  const nn::PackedRows rows = pack(src, nullptr, model_->device());
  const at::Tensor memory = model_->encoder->forward(rows, model_->options(), {});
  for (const DecoderLayer& layer : model_->decoder->layers) {
    caches_.push_back({.cross_kv = layer->cross_attention->kv->forward(memory), .k = {}, .v = {}});
  }
}

void TransformerStepModel::set_sources() {
  std::vector<int64_t> lanes_of(src_lengths_.size(), 0);
  for (const int64_t source : lane_sources_) ++lanes_of[source];
  const c10::Device device = model_->device();
  query_offsets_ = offsets_of(lanes_of, device);
  key_offsets_ = offsets_of(src_lengths_, device);
  const auto lanes = static_cast<int64_t>(lane_sources_.size());
  slots_ = at::arange(lanes, at::dtype(at::kInt).device(device));
}

void TransformerStepModel::make_room() {
  if (time_ < lineage_.size(1)) return;
  for (LayerCache& cache : caches_) {
    cache.k = grown(cache.k, kStepsPerChunk);
    cache.v = grown(cache.v, kStepsPerChunk);
  }
  lineage_ =
      at::cat({lineage_, at::zeros({lineage_.size(0), kStepsPerChunk}, lineage_.options())}, 1);
}

at::Tensor TransformerStepModel::step(const at::Tensor& tokens) {
  const torch::NoGradGuard no_grad;
  const auto lanes = static_cast<int64_t>(lane_sources_.size());
  TORCH_CHECK(tokens.dim() == 1 && tokens.size(0) == lanes, "[transformer] step: tokens must be [",
              lanes, "], got ", tokens.sizes());
  make_room();
  lineage_.select(1, time_).copy_(slots_);
  const at::Tensor ids = tokens.to(model_->device());
  positions_ = at::full_like(ids, time_);

  DecoderImpl& decoder = *model_->decoder;
  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder.embed(ids, positions_, time_ + 1, {});
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const DecoderLayerImpl& layer = *decoder.layers[i];
    const DecoderAttention attention{
        .self = [&](const at::Tensor& h) { return attend_self(layer, caches_[i], h); },
        .cross = [&](const at::Tensor& h) { return attend_cross(layer, caches_[i], h); }};
    x = layer.forward(x, attention, {model_->options(), no_dropout, 0});
  }
  ++time_;
  const at::Tensor weight = model_->output_weight().narrow(0, 0, model_->num_classes());
  return at::log_softmax(kernels::linear(decoder.finish(x), weight).to(at::kFloat), 1);
}

at::Tensor TransformerStepModel::attend_self(const DecoderLayerImpl& layer, LayerCache& cache,
                                             const at::Tensor& x) {
  const at::Tensor qkv = layer.self_attention->project(x, positions_);
  const std::vector<at::Tensor> parts = qkv.chunk(3, 1);
  return layer.self_attention->out->forward(kernels::decode_self_attention(
      parts[0].contiguous(), parts[1].contiguous(), parts[2].contiguous(), cache.k, cache.v,
      lineage_, time_, model_->options().decoder.num_heads));
}

at::Tensor TransformerStepModel::attend_cross(const DecoderLayerImpl& layer,
                                              const LayerCache& cache, const at::Tensor& x) const {
  // The lanes of a source are one sequence of queries over its keys.
  return layer.cross_attention->out->forward(
      kernels::cross_attention(layer.cross_attention->q->forward(x), cache.cross_kv,
                               {.query_offsets = query_offsets_,
                                .key_offsets = key_offsets_,
                                .num_heads = model_->options().decoder.num_heads,
                                .dropout = {}}));
}

void TransformerStepModel::reorder(const std::vector<int64_t>& parents) {
  const torch::NoGradGuard no_grad;
  const size_t old_lanes = lane_sources_.size();
  std::vector<int64_t> sources;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < static_cast<int64_t>(old_lanes),
                "[transformer] reorder: lane ", parent, " of ", old_lanes);
    sources.push_back(lane_sources_[parent]);
  }
  TORCH_CHECK(std::is_sorted(sources.begin(), sources.end()),
              "[transformer] reorder: lanes must stay in the order of their sources");
  lineage_ = lineage_.index_select(0, at::tensor(parents, at::kLong).to(model_->device()));
  if (parents.size() == old_lanes && sources == lane_sources_) return;
  drop_sources(sources);
  set_sources();
  // Slots of lanes that have left cost memory and nothing else, copying costs time.
  if (static_cast<int64_t>(parents.size()) * 4 <= caches_.front().k.size(1) * 3) copy_history();
}

void TransformerStepModel::drop_sources(const std::vector<int64_t>& old_sources) {
  std::vector<int64_t> kept = old_sources;
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::vector<int64_t> first_row(src_lengths_.size() + 1, 0);
  std::partial_sum(src_lengths_.begin(), src_lengths_.end(), first_row.begin() + 1);
  std::vector<int64_t> rows, lengths, renamed(src_lengths_.size(), -1);
  for (const int64_t source : kept) {
    renamed[source] = static_cast<int64_t>(lengths.size());
    lengths.push_back(src_lengths_[source]);
    for (int64_t row = first_row[source]; row < first_row[source + 1]; ++row) rows.push_back(row);
  }
  if (lengths.size() != src_lengths_.size()) {
    const at::Tensor index = at::tensor(rows, at::kLong).to(model_->device());
    for (LayerCache& cache : caches_) cache.cross_kv = cache.cross_kv.index_select(0, index);
  }
  src_lengths_ = std::move(lengths);
  lane_sources_.clear();
  for (const int64_t source : old_sources) lane_sources_.push_back(renamed[source]);
}

void TransformerStepModel::copy_history() {
  const auto lanes = static_cast<int64_t>(lane_sources_.size());
  const int64_t room = lineage_.size(1);
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
