#include "models/decoders/transformer_stream.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/compute.h"
#include "kernels/gemm/large_pages.h"
#include "kernels/rounding.h"
#include "models/lanes.h"
#include "models/memory.h"

namespace stretto::models {
namespace {

constexpr int64_t kRowsPerChunk = 64;

int64_t whole_chunks(int64_t rows) {
  return (rows + kRowsPerChunk - 1) / kRowsPerChunk * kRowsPerChunk;
}

/// `rows` [R, E] with room for `more`; the new ones are not set.
at::Tensor with_more_rows(const at::Tensor& rows, int64_t more) {
  at::Tensor larger =
      kernels::gemm::in_large_pages({rows.size(0) + more, rows.size(1)}, rows.options());
  larger.narrow(0, 0, rows.size(0)).copy_(rows);
  return larger;
}

}  // namespace

TransformerStreamDecoder::TransformerStreamDecoder(std::shared_ptr<TransformerDecoder> decoder)
    : decoder_(std::move(decoder)) {
  const torch::NoGradGuard no_grad;
  for (const TransformerDecoderLayer& layer : decoder_->layers_) {
    // Caches are fp32, whatever the arithmetic of products.
    const auto no_rows = [&](int64_t width) {
      return kernels::widened(at::empty({0, width}, layer->self_attention->qkv->weight.options()));
    };
    const at::Tensor none = no_rows(layer->self_attention->options.kv_width());
    layers_.push_back({.k = none,
                       .v = at::empty_like(none),
                       .memory = no_rows(layer->cross_attention->kv->weight.size(0))});
  }
}

void TransformerStreamDecoder::note_bytes() {
  int64_t bytes = 0;
  for (const LayerRows& rows : layers_) {
    for (const at::Tensor* part : {&rows.k, &rows.v, &rows.memory}) {
      bytes += part->numel() * static_cast<int64_t>(part->element_size());
    }
  }
  most_cache_bytes_ = std::max(most_cache_bytes_, bytes);
}

void TransformerStreamDecoder::enter(const Encoded& memory) {
  const torch::NoGradGuard no_grad;
  decoder_->check_memory(memory);
  const std::vector<int64_t> lengths = lengths_of(memory.rows.offsets);
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  make_room_for_memory(rows);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const at::Tensor kv =
        kernels::widened(keys_and_values(*decoder_->layers_[i]->cross_attention, memory));
    layers_[i]
        .memory.narrow(0, memory_end_, rows)
        .copy_(kernels::rounded(kv, kernels::ComputeScope::current()));
  }
  for (const int64_t length : lengths) {
    memories_.begins.push_back(memory_end_);
    memories_.lengths.push_back(length);
    memories_.lanes.push_back(1);
    memory_end_ += length;
    histories_.emplace_back();
  }
}

// Half of what is in use is left free behind it, so that a row is moved few times.
void TransformerStreamDecoder::make_room_for_memory(int64_t rows) {
  const int64_t room = rows_of_memories();
  if (memory_end_ + rows <= room) return;
  const int64_t in_use =
      std::accumulate(memories_.lengths.begin(), memories_.lengths.end(), int64_t{0});
  const int64_t wanted = std::max(room, whole_chunks((in_use + rows) * 3 / 2));
  for (LayerRows& layer : layers_) {
    at::Tensor together =
        kernels::gemm::in_large_pages({wanted, layer.memory.size(1)}, layer.memory.options());
    int64_t to = 0;
    for (size_t i = 0; i < memories_.begins.size(); ++i) {
      const int64_t length = memories_.lengths[i];
      together.narrow(0, to, length).copy_(layer.memory.narrow(0, memories_.begins[i], length));
      to += length;
    }
    layer.memory = together;
  }
  memory_end_ = 0;
  for (size_t i = 0; i < memories_.begins.size(); ++i) {
    memories_.begins[i] = memory_end_;
    memory_end_ += memories_.lengths[i];
  }
  note_bytes();
}

void TransformerStreamDecoder::make_room_for_steps() {
  const auto before = rows_of_steps();
  const int64_t more = whole_chunks(std::max(before / 2, std::ssize(histories_)));
  for (LayerRows& layer : layers_) {
    layer.k = with_more_rows(layer.k, more);
    layer.v = with_more_rows(layer.v, more);
  }
  users_.resize(static_cast<size_t>(before + more), 0);
  // The first rows are the next ones to be written.
  for (int64_t row = before + more; row-- > before;) free_.push_back(static_cast<int32_t>(row));
  note_bytes();
}

void TransformerStreamDecoder::begin_steps() {
  std::vector<int64_t> steps;
  for (std::vector<int32_t>& history : histories_) {
    if (free_.empty()) make_room_for_steps();
    steps.push_back(std::ssize(history));
    history.push_back(free_.back());
    users_[static_cast<size_t>(free_.back())] = 1;
    free_.pop_back();
  }
  positions_ = at::tensor(steps, at::kLong);
  const int64_t longest = steps.empty() ? 0 : std::ranges::max(steps) + 1;
  if (longest <= bias_steps_) return;
  bias_steps_ = whole_chunks(longest);
  bias_ = bias_of(decoder_->distance_bias_, bias_steps_, layers_.front().k);
}

at::Tensor TransformerStreamDecoder::step(const at::Tensor& ids) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(ids.dim() == 1 && ids.size(0) == std::ssize(histories_), "[transformer] a step of ",
              histories_.size(), " lanes, got ids ", ids.sizes());
  begin_steps();
  const int64_t longest = ids.size(0) == 0 ? 0 : positions_.max().item<int64_t>() + 1;
  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(ids, positions_, longest, {});
  for (size_t i = 0; i < layers_.size(); ++i) {
    const TransformerDecoderLayerImpl& layer = *decoder_->layers_[i];
    LayerRows& rows = layers_[i];
    const DecoderAttention attention{
        .self = [&](const at::Tensor& h) { return attend_self(layer, rows, h); },
        .cross = [&](const at::Tensor& h) { return attend_cross(layer, rows, h); }};
    x = layer.forward(x, attention, {decoder_->options_, no_dropout, 0});
  }
  return decoder_->shell_.finish(x);
}

at::Tensor TransformerStreamDecoder::attend_self(const TransformerDecoderLayerImpl& layer,
                                                 LayerRows& rows, const at::Tensor& x) {
  const std::vector<at::Tensor> parts =
      layer.self_attention->split(kernels::widened(layer.self_attention->project(x, positions_)));
  return layer.self_attention->out->forward(kernels::placed_self_attention(
      parts[0].contiguous(), parts[1], parts[2], rows.k, rows.v, histories_,
      decoder_->options_.stack.num_heads, bias_, layer.self_attention->options.limits));
}

at::Tensor TransformerStreamDecoder::attend_cross(const TransformerDecoderLayerImpl& layer,
                                                  const LayerRows& rows,
                                                  const at::Tensor& x) const {
  return layer.cross_attention->out->forward(
      kernels::placed_cross_attention(kernels::widened(layer.cross_attention->q->forward(x)),
                                      rows.memory, memories_, decoder_->options_.stack.num_heads));
}

void TransformerStreamDecoder::reorder(const std::vector<int64_t>& parents) {
  std::vector<size_t> sources;  // of each lane
  for (size_t i = 0; i < memories_.lanes.size(); ++i) {
    sources.insert(sources.end(), static_cast<size_t>(memories_.lanes[i]), i);
  }
  std::vector<int64_t> lanes(memories_.lanes.size(), 0);
  std::vector<std::vector<int32_t>> histories;
  size_t last = 0;
  for (const int64_t parent : parents) {
    TORCH_CHECK(parent >= 0 && parent < std::ssize(sources), "[transformer] reorder: lane ", parent,
                " of ", sources.size());
    const size_t source = sources[static_cast<size_t>(parent)];
    TORCH_CHECK(source >= last,
                "[transformer] reorder: lanes must stay in the order of their sources");
    last = source;
    ++lanes[source];
    histories.push_back(histories_[static_cast<size_t>(parent)]);
    for (const int32_t row : histories.back()) ++users_[static_cast<size_t>(row)];
  }
  for (const std::vector<int32_t>& history : histories_) {
    for (const int32_t row : history) {
      if (--users_[static_cast<size_t>(row)] == 0) free_.push_back(row);
    }
  }
  histories_ = std::move(histories);
  kernels::PlacedMemories kept;
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] == 0) continue;
    kept.begins.push_back(memories_.begins[i]);
    kept.lengths.push_back(memories_.lengths[i]);
    kept.lanes.push_back(lanes[i]);
  }
  memories_ = std::move(kept);
  memory_end_ = memories_.begins.empty() ? 0 : memories_.begins.back() + memories_.lengths.back();
}

}  // namespace stretto::models
