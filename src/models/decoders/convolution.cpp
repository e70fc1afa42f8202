#include "models/decoders/convolution.h"

#include "kernels/convolution/convolution.h"
#include "models/decoders/convolution_step.h"
#include "models/lanes.h"
#include "models/memory.h"
#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {

ConvAttentionImpl::ConvAttentionImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                                     const ConvStackOptions& options, int64_t d_model) {
  query =
      register_module("query", make_linear(init.child("query"), sizes.channels, d_model, options));
  out = register_module("out", make_linear(init.child("out"), d_model, sizes.channels, options));
  adapter = nn::make_adapter(*this, init, sizes.channels);
}

at::Tensor ConvAttentionImpl::forward(const at::Tensor& h, const at::Tensor& embedded,
                                      const ConvDecoderWeights& weights,
                                      const ConvDecoderPass& pass) const {
  const at::Tensor q = half_sum(query->forward(h, weights.query), embedded);
  const at::Tensor attended = out->forward(nn::watch(*this, pass.attend(q)), weights.out);
  return half_sum(nn::adapted(adapter, attended), h);
}

ConvDecoderLayerImpl::ConvDecoderLayerImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                                           const ConvStackOptions& options, int64_t d_model) {
  block = register_module("block", ConvBlock(init.child("block"), sizes, options));
  attention =
      register_module("attention", ConvAttention(init.child("attention"), sizes, options, d_model));
}

ConvDecoderWeights ConvDecoderLayerImpl::effective() const {
  return {.block = block->effective(),
          .query = attention->query->effective(),
          .out = attention->out->effective()};
}

at::Tensor ConvDecoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& embedded,
                                         const ConvDecoderWeights& weights,
                                         const ConvDecoderPass& pass) const {
  const at::Tensor h = attention->forward(pass.gated(x), embedded, weights, pass);
  return nn::watch(*this, half_sum(h, block->residual(x, weights.block)));
}

ConvDecoder::ConvDecoder(const ConvDecoderOptions& options, const PartSetup& setup)
    : options_(ConvStackOptions::of(options, setup.d_model)),
      width_(options.output_width(setup.d_model)),
      first_site_(setup.first_site),
      shell_(*this, setup, options_, width_),
      layers_(make_conv_layers<ConvDecoderLayer>(*this, setup, options_)) {
  required_memory(setup, "conv");
}

at::Tensor ConvDecoder::run(const nn::PackedRows& input, const Encoded& memory,
                            const ForwardContext& context, const Observer& observe) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  const double p = options_.dropout;
  const kernels::MultiStepAttention pairs{.query_offsets = input.offsets,
                                          .key_offsets = memory.rows.offsets};
  const at::Tensor embedded = shell_.rows.embed(input, dropout.at(p, first_site_ + kEmbeddingSite));
  at::Tensor x = shell_.in->forward(embedded);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ConvDecoderLayerImpl& layer = *layers_[i];
    const ConvDecoderWeights weights = layer.effective();
    const kernels::TimeWindow window{.offsets = input.offsets,
                                     .kernel = layer.block->kernel(),
                                     .border = kernels::Border::kCausal};
    const ConvDecoderPass pass{.gated =
                                   [&](const at::Tensor& rows) {
                                     return layer.block->forward(rows, weights.block, window,
                                                                 dropout.at(p, first_site_ + i));
                                   },
                               .attend =
                                   [&](const at::Tensor& q) {
                                     if (observe) observe(static_cast<int64_t>(i), q);
                                     return kernels::multi_step_attention(q, memory.keys,
                                                                          memory.attended(), pairs);
                                   }};
    x = layer.forward(x, embedded, weights, pass);
  }
  return kernels::dropout(shell_.out->forward(x), dropout.at(p, first_site_ + kConvOutputSite));
}

at::Tensor ConvDecoder::forward(const nn::PackedRows& input, const Encoded& memory,
                                const ForwardContext& context) {
  return run(input, memory, context, nullptr);
}

double ConvDecoder::operations(double /*length*/, double memory_length) const {
  double sum = weight_operations(*this);
  for (const auto& layer : layers_) {
    const auto d = static_cast<double>(layer->attention->out->weight.size(1));
    sum += attention_operations(d, d, memory_length);
  }
  return sum;
}

std::unique_ptr<StepDecoder> ConvDecoder::start(const Encoded& memory, int64_t lanes_per_source) {
  auto self = std::dynamic_pointer_cast<ConvDecoder>(shared_from_this());
  return std::make_unique<ConvStepDecoder>(std::move(self), memory, lanes_per_source);
}

int64_t ConvDecoder::max_length() const {
  return options_.positions == "learned" ? options_.max_positions : Decoder::max_length();
}

std::vector<at::Tensor> ConvDecoder::attention(const nn::PackedRows& input, const Encoded& memory,
                                               int64_t layer) {
  const int64_t wanted = attending_layer(layer, layers_.size(), "conv");
  at::Tensor weights;
  run(input, memory, {}, [&](int64_t at_layer, const at::Tensor& q) {
    if (at_layer != wanted) return;
    weights = kernels::multi_step_attention_weights(
        q, memory.keys, {.query_offsets = input.offsets, .key_offsets = memory.rows.offsets});
  });
  return attention_blocks(weights, input.offsets, memory.rows.offsets);
}

std::shared_ptr<Decoder> make_conv_decoder(const ConvDecoderOptions& options,
                                           const PartSetup& setup) {
  return std::make_shared<ConvDecoder>(options, setup);
}

}  // namespace stretto::models
