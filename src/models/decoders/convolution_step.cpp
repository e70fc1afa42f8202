#include "models/decoders/convolution_step.h"

#include <utility>

namespace stretto::models {

ConvStepDecoder::ConvStepDecoder(std::shared_ptr<ConvDecoder> decoder, const Encoded& memory,
                                 int64_t lanes_per_source)
    : decoder_(std::move(decoder)),
      lanes_(memory, lanes_per_source),
      keys_(memory.keys),
      values_(memory.attended()) {
  const torch::NoGradGuard no_grad;
  in_ = decoder_->shell_.in->effective();
  out_ = decoder_->shell_.out->effective();
  for (const ConvDecoderLayer& layer : decoder_->layers_) {
    const ConvDecoderWeights weights = layer->effective();
    const int64_t kernel = layer->block->kernel();
    layers_.push_back(
        {.weights = weights,
         .convolution = kernels::PackedConvolution(weights.block.convolution.weight, {}, kernel),
         .rows = kernels::RowCache(kernel)});
  }
}

at::Tensor ConvStepDecoder::step(const at::Tensor& ids) {
  ConvShell& shell = decoder_->shell_;
  const kernels::MultiStepAttention pairs{.query_offsets = lanes_.query_offsets(),
                                          .key_offsets = lanes_.key_offsets()};
  const at::Tensor embedded = shell.rows.embed(ids, at::full_like(ids, time_), time_ + 1, {});
  at::Tensor x = shell.in->forward(embedded, in_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ConvDecoderLayerImpl& layer = *decoder_->layers_[i];
    LayerState& state = layers_[i];
    const ConvDecoderPass pass{.gated =
                                   [&](const at::Tensor& rows) {
                                     return layer.block->gate(kernels::time_convolution_step(
                                         state.convolution, rows, state.rows));
                                   },
                               .attend =
                                   [&](const at::Tensor& q) {
                                     return kernels::multi_step_attention(q, keys_, values_, pairs);
                                   }};
    x = layer.forward(x, embedded, state.weights, pass);
  }
  ++time_;
  return shell.out->forward(x, out_);
}

void ConvStepDecoder::reorder(const std::vector<int64_t>& parents) {
  const auto change = lanes_.reorder(parents);
  for (LayerState& state : layers_) state.rows.reorder(change.parents);
  if (!change.rows.defined()) return;
  const bool one_for_both = values_.is_same(keys_);
  keys_ = keys_.index_select(0, change.rows);
  values_ = one_for_both ? keys_ : values_.index_select(0, change.rows);
}

}  // namespace stretto::models
