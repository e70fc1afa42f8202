#include "models/decoders/transformer.h"

#include <algorithm>

#include "models/decoders/transformer_step.h"
#include "models/decoders/transformer_stream.h"
#include "models/lanes.h"
#include "models/layer_drop.h"
#include "models/memory.h"
#include "models/operations.h"

namespace stretto::models {

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const nn::Init& init,
                                                         const TransformerPart& options,
                                                         int64_t d_model, bool attends) {
  self_attention = register_module(
      "self_attention",
      make_self_attention(init.child("self_attention"), options, d_model, /*causal=*/true));
  if (attends) {
    cross_attention = register_module(
        "cross_attention",
        nn::CrossAttention(init.child("cross_attention"),
                           nn::AttentionOptions{.d_model = d_model,
                                                .num_heads = options.stack.num_heads,
                                                .num_kv_heads = options.stack.num_kv_heads,
                                                .head_dim = options.stack.head_dim}));
  }
  ffn = register_module("ffn", make_feed_forward(init.child("ffn"), options, d_model));
  if (options.parallel_residual) {
    const std::vector<std::string> parts = attends
                                               ? std::vector<std::string>{"self", "cross", "ffn"}
                                               : std::vector<std::string>{"self", "ffn"};
    residual = register_module("residual",
                               ParallelResidual(init.child("residual"), options, d_model, parts));
    return;
  }
  self_residual =
      register_module("self_residual", Residual(init.child("self_residual"), options, d_model));
  if (attends) {
    cross_residual =
        register_module("cross_residual", Residual(init.child("cross_residual"), options, d_model));
  }
  ffn_residual =
      register_module("ffn_residual", Residual(init.child("ffn_residual"), options, d_model));
}

at::Tensor TransformerDecoderLayerImpl::forward(at::Tensor x, const DecoderAttention& attention,
                                                const LayerDropout& dropout) const {
  using D = LayerDropout;
  const TransformerPart& o = dropout.options;
  const kernels::Dropout of_self = dropout.at(o.dropout, D::kSelf);
  const kernels::Dropout of_cross = dropout.at(o.dropout, D::kCross);
  const kernels::Dropout of_ffn = dropout.at(o.dropout, D::kFfn);
  const auto transform = [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  };
  if (residual && cross_attention) {
    return residual->forward(
        x, {{attention.self, of_self}, {attention.cross, of_cross}, {transform, of_ffn}});
  }
  if (residual) return residual->forward(x, {{attention.self, of_self}, {transform, of_ffn}});
  x = self_residual->forward(x, of_self, attention.self);
  if (cross_residual) x = cross_residual->forward(x, of_cross, attention.cross);
  return ffn_residual->forward(x, of_ffn, transform);
}

TransformerDecoder::TransformerDecoder(const TransformerPart& options, const PartSetup& setup)
    : options_(options),
      d_model_(setup.d_model),
      first_site_(setup.first_site),
      attends_(setup.memory_width.has_value()),
      shell_(*this, setup, options),
      distance_bias_(make_distance_bias(*this, setup, options, /*causal=*/true)),
      layers_(make_layers<TransformerDecoderLayer>(*this, setup.init, options, setup.d_model,
                                                   attends_)) {
  TORCH_CHECK(setup.memory_width.value_or(d_model_) == d_model_,
              "[transformer] the decoder attends to rows of model.d_model = ", d_model_,
              ", the encoder gives rows of ", *setup.memory_width);
  TORCH_CHECK(!attends_ || options.form.head_dim == 0,
              "[transformer] heads of a decoder with memory have the width of its stack");
}

void TransformerDecoder::check_memory(const Encoded& memory) const {
  const bool has_rows = memory.keys.defined() && memory.keys.numel() > 0;
  TORCH_CHECK(
      attends_ || !has_rows,
      "[transformer] the decoder was built without memory (PartSetup::memory_width), and is "
      "given rows of one");
  TORCH_CHECK(!attends_ || memory.keys.defined(),
              "[transformer] the decoder attends to a memory, and is given none");
}

at::Tensor TransformerDecoder::run(const nn::PackedRows& input, const Encoded& memory,
                                   const ForwardContext& context, const Observer& observe) {
  check_memory(memory);
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  at::Tensor x = shell_.embed(input, dropout.at(options_.dropout, first_site_ + kEmbeddingSite));
  const kernels::DistanceBias bias = bias_of(distance_bias_, input.offsets.max_length, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const TransformerDecoderLayerImpl& layer = *layers_[i];
    if (is_left_out(options_.stack.layer_drop, context, first_site_, i)) {
      x = without_layer(x, layer, memory.attended());
      continue;
    }
    const LayerDropout drops{options_, dropout, layer_site(first_site_, i)};
    const double p = options_.attention_dropout;
    const auto self = [&](const at::Tensor& h) {
      return layer.self_attention->forward(h, input, true, drops.at(p, LayerDropout::kSelfWeights),
                                           bias);
    };
    const auto cross = [&](const at::Tensor& h) {
      const at::Tensor q = layer.cross_attention->q->forward(h, kernels::Storage::kRounded);
      const at::Tensor kv = keys_and_values(*layer.cross_attention, memory);
      if (observe) observe(static_cast<int64_t>(i), q, kv);
      const at::Tensor attended =
          kernels::cross_attention(q, kv,
                                   {.query_offsets = input.offsets,
                                    .key_offsets = memory.rows.offsets,
                                    .num_heads = options_.stack.num_heads,
                                    .dropout = drops.at(p, LayerDropout::kCrossWeights),
                                    .num_kv_heads = options_.stack.num_kv_heads});
      return layer.cross_attention->out->forward(nn::watch(*layer.cross_attention, attended),
                                                 kernels::Storage::kRounded);
    };
    x = layer.forward(x, {.self = self, .cross = cross}, drops);
  }
  return shell_.finish(x);
}

at::Tensor TransformerDecoder::forward(const nn::PackedRows& input, const Encoded& memory,
                                       const ForwardContext& context) {
  return run(input, memory, context, nullptr);
}

double TransformerDecoder::operations(double length, double memory_length) const {
  const auto d = static_cast<double>(d_model_), layers = static_cast<double>(layers_.size());
  const double of_weights = weight_operations(*this) - memory_operations();
  const LayerForm& form = options_.form;
  if (options_.head_dim() == 0 && form.sliding_window == 0) {
    return of_weights +
           layers * attention_operations(d, d, length + (attends_ ? memory_length : 0));
  }
  const auto q = static_cast<double>(layers_.front()->self_attention->options.q_width());
  double of_attention = attends_ ? layers * attention_operations(q, q, memory_length) : 0;
  for (const auto& layer : layers_) {
    const nn::AttentionOptions& own = layer->self_attention->options;
    const auto width = static_cast<double>(own.q_width());
    const double reach =
        own.limits.window == 0 ? length : std::min(length, static_cast<double>(own.limits.window));
    of_attention += attention_operations(width, width, reach);
  }
  return of_weights + of_attention;
}

double TransformerDecoder::memory_operations() const {
  double sum = 0;
  if (!attends_) return sum;
  for (const auto& layer : layers_) sum += weight_operations(*layer->cross_attention->kv);
  return sum;
}

std::unique_ptr<StepDecoder> TransformerDecoder::start(const Encoded& memory,
                                                       int64_t lanes_per_source) {
  check_memory(memory);
  auto self = std::dynamic_pointer_cast<TransformerDecoder>(shared_from_this());
  return std::make_unique<TransformerStepDecoder>(std::move(self), memory, lanes_per_source);
}

std::unique_ptr<StreamDecoder> TransformerDecoder::start_stream() {
  const at::Tensor& weight = layers_.front()->self_attention->qkv->weight;
  if (!attends_ || options_.positions == "shaw" || !weight.is_cpu()) return nullptr;
  auto self = std::dynamic_pointer_cast<TransformerDecoder>(shared_from_this());
  return std::make_unique<TransformerStreamDecoder>(std::move(self));
}

int64_t TransformerDecoder::max_length() const {
  return options_.positions == "learned" ? options_.max_positions : Decoder::max_length();
}

std::vector<at::Tensor> TransformerDecoder::attention(const nn::PackedRows& input,
                                                      const Encoded& memory, int64_t layer) {
  TORCH_CHECK(attends_, "[transformer] a decoder without memory has no alignments");
  const int64_t wanted = attending_layer(layer, layers_.size(), "transformer");
  at::Tensor weights;
  run(input, memory, {}, [&](int64_t at_layer, const at::Tensor& q, const at::Tensor& kv) {
    if (at_layer != wanted) return;
    weights = kernels::cross_attention_weights(q, kv,
                                               {.query_offsets = input.offsets,
                                                .key_offsets = memory.rows.offsets,
                                                .num_heads = options_.stack.num_heads,
                                                .dropout = {},
                                                .num_kv_heads = options_.stack.num_kv_heads});
  });
  return attention_blocks(weights, input.offsets, memory.rows.offsets);
}

}  // namespace stretto::models
