#include "models/encoders/transformer.h"

#include "models/layer_drop.h"
#include "models/operations.h"

namespace stretto::models {

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const nn::Init& init,
                                                         const TransformerPart& options,
                                                         int64_t d_model) {
  self_attention = register_module(
      "self_attention",
      make_self_attention(init.child("self_attention"), options, d_model, /*causal=*/false));
  ffn = register_module("ffn", make_feed_forward(init.child("ffn"), options, d_model));
  if (options.parallel_residual) {
    residual =
        register_module("residual", ParallelResidual(init.child("residual"), options, d_model,
                                                     std::vector<std::string>{"self", "ffn"}));
    return;
  }
  self_residual =
      register_module("self_residual", Residual(init.child("self_residual"), options, d_model));
  ffn_residual =
      register_module("ffn_residual", Residual(init.child("ffn_residual"), options, d_model));
}

at::Tensor TransformerEncoderLayerImpl::forward(at::Tensor x, const nn::PackedRows& rows,
                                                const LayerDropout& dropout,
                                                const kernels::DistanceBias& bias) const {
  using D = LayerDropout;
  const TransformerPart& o = dropout.options;
  const kernels::Dropout of_self = dropout.at(o.dropout, D::kSelf);
  const kernels::Dropout of_ffn = dropout.at(o.dropout, D::kFfn);
  const auto attend = [&](const at::Tensor& h) {
    return self_attention->forward(h, rows, false, dropout.at(o.attention_dropout, D::kSelfWeights),
                                   bias);
  };
  const auto transform = [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  };
  if (residual) return residual->forward(x, {{attend, of_self}, {transform, of_ffn}});
  x = self_residual->forward(x, of_self, attend);
  return ffn_residual->forward(x, of_ffn, transform);
}

TransformerEncoder::TransformerEncoder(const TransformerPart& options, const PartSetup& setup)
    : options_(options),
      d_model_(setup.d_model),
      first_site_(setup.first_site),
      shell_(*this, setup, options),
      distance_bias_(make_distance_bias(*this, setup, options, /*causal=*/false)),
      layers_(make_layers<TransformerEncoderLayer>(*this, setup.init, options, setup.d_model)) {}

Encoded TransformerEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  at::Tensor x = shell_.embed(input, dropout.at(options_.dropout, first_site_ + kEmbeddingSite));
  const kernels::DistanceBias bias = bias_of(distance_bias_, input.offsets.max_length, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (is_left_out(options_.stack.layer_drop, context, first_site_, i)) {
      x = without_layer(x, *layers_[i]);
      continue;
    }
    x = layers_[i]->forward(x, input, {options_, dropout, layer_site(first_site_, i)}, bias);
  }
  return {.rows = input, .keys = shell_.finish(x), .values = {}, .state = {}};
}

double TransformerEncoder::operations(double length) const {
  const auto q = static_cast<double>(layers_.front()->self_attention->options.q_width());
  return weight_operations(*this) +
         static_cast<double>(layers_.size()) * attention_operations(q, q, length);
}

}  // namespace stretto::models
