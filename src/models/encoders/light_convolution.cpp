#include "models/encoders/light_convolution.h"

#include "models/operations.h"

namespace stretto::models {

LightEncoderLayerImpl::LightEncoderLayerImpl(const nn::Init& init, const LightPart& part,
                                             int64_t d_model, int64_t kernel) {
  convolution = register_module("convolution",
                                LightConvolution(init.child("convolution"), part, d_model, kernel));
  ffn = register_module("ffn", make_feed_forward(init.child("ffn"), part, d_model));
  convolution_residual = register_module(
      "convolution_residual", Residual(init.child("convolution_residual"), part, d_model));
  ffn_residual =
      register_module("ffn_residual", Residual(init.child("ffn_residual"), part, d_model));
}

at::Tensor LightEncoderLayerImpl::forward(at::Tensor x, const LightConvolutionImpl::Pass& pass,
                                          const LayerDropout& dropout) const {
  using D = LayerDropout;
  const TransformerPart& o = dropout.options;
  x = convolution_residual->forward(x, dropout.at(o.dropout, D::kSelf), [&](const at::Tensor& h) {
    return convolution->forward(h, pass);
  });
  return ffn_residual->forward(x, dropout.at(o.dropout, D::kFfn), [&](const at::Tensor& h) {
    return ffn->forward(h, dropout.at(o.activation_dropout, D::kFfnInner));
  });
}

LightEncoder::LightEncoder(const LightPart& part, const PartSetup& setup)
    : part_(part),
      d_model_(setup.d_model),
      first_site_(setup.first_site),
      shell_(*this, setup, part),
      layers_(make_light_layers<LightEncoderLayer>(*this, setup, part)) {}

Encoded LightEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  at::Tensor x = shell_.embed(input, dropout.at(part_.dropout, first_site_ + kEmbeddingSite));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto pass = layers_[i]->convolution->over(
        input.offsets, kernels::Border::kCentred, LightDropout::of(part_, dropout, first_site_, i));
    x = layers_[i]->forward(x, pass, {part_, dropout, layer_site(first_site_, i)});
  }
  return {.rows = input, .keys = shell_.finish(x), .values = {}, .state = {}};
}

double LightEncoder::operations(double /*length*/) const {
  return weight_operations(*this);
}

std::shared_ptr<Encoder> make_light_encoder(const LightEncoderOptions& options,
                                            const PartSetup& setup) {
  return std::make_shared<LightEncoder>(LightPart::of(options), setup);
}

std::shared_ptr<Encoder> make_dynamic_encoder(const DynamicEncoderOptions& options,
                                              const PartSetup& setup) {
  return std::make_shared<LightEncoder>(LightPart::of(options), setup);
}

}  // namespace stretto::models
