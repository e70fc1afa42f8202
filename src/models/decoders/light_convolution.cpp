#include "models/decoders/light_convolution.h"

#include "models/decoders/light_convolution_step.h"
#include "models/lanes.h"
#include "models/memory.h"
#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {

LightDecoderLayerImpl::LightDecoderLayerImpl(const nn::Init& init, const LightPart& part,
                                             int64_t d_model, int64_t kernel) {
  convolution = register_module("convolution",
                                LightConvolution(init.child("convolution"), part, d_model, kernel));
  cross_attention = register_module(
      "cross_attention",
      nn::CrossAttention(
          init.child("cross_attention"),
          nn::AttentionOptions{.d_model = d_model, .num_heads = part.stack.num_heads}));
  ffn = register_module("ffn", make_feed_forward(init.child("ffn"), part, d_model));
  convolution_residual = register_module(
      "convolution_residual", Residual(init.child("convolution_residual"), part, d_model));
  cross_residual =
      register_module("cross_residual", Residual(init.child("cross_residual"), part, d_model));
  ffn_residual =
      register_module("ffn_residual", Residual(init.child("ffn_residual"), part, d_model));
}

at::Tensor LightDecoderLayerImpl::forward(at::Tensor x, const LightDecoderPass& pass,
                                          const LayerDropout& dropout) const {
  using D = LayerDropout;
  const TransformerPart& o = dropout.options;
  x = convolution_residual->forward(x, dropout.at(o.dropout, D::kSelf), [&](const at::Tensor& h) {
    return convolution->forward(h, pass.convolution);
  });
  x = cross_residual->forward(x, dropout.at(o.dropout, D::kCross), [&](const at::Tensor& h) {
    constexpr auto kRounded = kernels::Storage::kRounded;
    const at::Tensor attended = pass.attend(cross_attention->q->forward(h, kRounded));
    return cross_attention->out->forward(nn::watch(*cross_attention, attended), kRounded);
  });
  return ffn_residual->forward(x, dropout.at(o.dropout, D::kFfn), [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  });
}

LightDecoder::LightDecoder(const LightPart& part, double attention_dropout, const PartSetup& setup)
    : part_(part),
      d_model_(setup.d_model),
      first_site_(setup.first_site),
      shell_(*this, setup, part),
      layers_(make_light_layers<LightDecoderLayer>(*this, setup, part)) {
  part_.attention_dropout = attention_dropout;
  required_memory(setup, "light_conv");
}

at::Tensor LightDecoder::run(const nn::PackedRows& input, const Encoded& memory,
                             const ForwardContext& context, const Observer& observe) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  at::Tensor x = shell_.embed(input, dropout.at(part_.dropout, first_site_ + kEmbeddingSite));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LightDecoderLayerImpl& layer = *layers_[i];
    const LayerDropout drops{part_, dropout, layer_site(first_site_, i)};
    const auto attend = [&](const at::Tensor& q) {
      const at::Tensor kv = keys_and_values(*layer.cross_attention, memory);
      if (observe) observe(static_cast<int64_t>(i), q, kv);
      return kernels::cross_attention(
          q, kv,
          {.query_offsets = input.offsets,
           .key_offsets = memory.rows.offsets,
           .num_heads = part_.stack.num_heads,
           .dropout = drops.at(part_.attention_dropout, LayerDropout::kCrossWeights)});
    };
    const auto convolution = layer.convolution->over(
        input.offsets, kernels::Border::kCausal, LightDropout::of(part_, dropout, first_site_, i));
    x = layer.forward(x, {.convolution = convolution, .attend = attend}, drops);
  }
  return shell_.finish(x);
}

at::Tensor LightDecoder::forward(const nn::PackedRows& input, const Encoded& memory,
                                 const ForwardContext& context) {
  return run(input, memory, context, nullptr);
}

double LightDecoder::operations(double /*length*/, double memory_length) const {
  const auto d = static_cast<double>(d_model_), layers = static_cast<double>(layers_.size());
  return weight_operations(*this) - memory_operations() +
         layers * attention_operations(d, d, memory_length);
}

double LightDecoder::memory_operations() const {
  double sum = 0;
  for (const auto& layer : layers_) sum += weight_operations(*layer->cross_attention->kv);
  return sum;
}

std::unique_ptr<StepDecoder> LightDecoder::start(const Encoded& memory, int64_t lanes_per_source) {
  auto self = std::dynamic_pointer_cast<LightDecoder>(shared_from_this());
  return std::make_unique<LightStepDecoder>(std::move(self), memory, lanes_per_source);
}

int64_t LightDecoder::max_length() const {
  return part_.positions == "learned" ? part_.max_positions : Decoder::max_length();
}

std::vector<at::Tensor> LightDecoder::attention(const nn::PackedRows& input, const Encoded& memory,
                                                int64_t layer) {
  const int64_t wanted = attending_layer(layer, layers_.size(), "light_conv");
  at::Tensor weights;
  run(input, memory, {}, [&](int64_t at_layer, const at::Tensor& q, const at::Tensor& kv) {
    if (at_layer != wanted) return;
    weights = kernels::cross_attention_weights(q, kv,
                                               {.query_offsets = input.offsets,
                                                .key_offsets = memory.rows.offsets,
                                                .num_heads = part_.stack.num_heads,
                                                .dropout = {}});
  });
  return attention_blocks(weights, input.offsets, memory.rows.offsets);
}

std::shared_ptr<Decoder> make_light_decoder(const LightDecoderOptions& options,
                                            const PartSetup& setup) {
  return std::make_shared<LightDecoder>(LightPart::of(options), options.attention_dropout, setup);
}

std::shared_ptr<Decoder> make_dynamic_decoder(const DynamicDecoderOptions& options,
                                              const PartSetup& setup) {
  return std::make_shared<LightDecoder>(LightPart::of(options), options.attention_dropout, setup);
}

}  // namespace stretto::models
