#include "models/decoders/light_convolution_step.h"

#include <utility>

#include "models/memory.h"

namespace stretto::models {

LightStepDecoder::LightStepDecoder(std::shared_ptr<LightDecoder> decoder, const Encoded& memory,
                                   int64_t lanes_per_source)
    : decoder_(std::move(decoder)), lanes_(memory, lanes_per_source) {
  const torch::NoGradGuard no_grad;
  for (const LightDecoderLayer& layer : decoder_->layers_) {
    layers_.push_back(
        {.cross_kv = kernels::widened(keys_and_values(*layer->cross_attention, memory)),
         .rows = kernels::RowCache(layer->convolution->kernel())});
  }
}

LightDecoderPass LightStepDecoder::pass_of(const LightDecoderLayerImpl& layer, LayerState& state) {
  const LightConvolutionImpl& convolution = *layer.convolution;
  const auto weigh = [&](const at::Tensor& rows, const at::Tensor& filters) {
    return convolution.predicts() ? kernels::dynamic_convolution_step(
                                        filters, convolution.num_heads(), rows, state.rows)
                                  : kernels::light_convolution_step(filters, rows, state.rows);
  };
  const auto attend = [&](const at::Tensor& q) {
    return kernels::cross_attention(q, state.cross_kv,
                                    {.query_offsets = lanes_.query_offsets(),
                                     .key_offsets = lanes_.key_offsets(),
                                     .num_heads = decoder_->part_.stack.num_heads,
                                     .dropout = {}});
  };
  return {.convolution = {.weigh = weigh}, .attend = attend};
}

at::Tensor LightStepDecoder::step(const at::Tensor& ids) {
  const nn::DropoutSource no_dropout;
  at::Tensor x = decoder_->shell_.embed(ids, at::full_like(ids, time_), time_ + 1, {});
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LightDecoderLayerImpl& layer = *decoder_->layers_[i];
    x = layer.forward(x, pass_of(layer, layers_[i]), {decoder_->part_, no_dropout, 0});
  }
  ++time_;
  return decoder_->shell_.finish(x);
}

void LightStepDecoder::reorder(const std::vector<int64_t>& parents) {
  const auto change = lanes_.reorder(parents);
  for (LayerState& state : layers_) {
    state.rows.reorder(change.parents);
    if (change.rows.defined()) state.cross_kv = state.cross_kv.index_select(0, change.rows);
  }
}

}  // namespace stretto::models
