#include "models/encoders/convolution.h"

#include "kernels/convolution/convolution.h"
#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {

ConvEncoderLayerImpl::ConvEncoderLayerImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                                           const ConvStackOptions& options, int64_t /*d_model*/) {
  block = register_module("block", ConvBlock(init.child("block"), sizes, options));
}

at::Tensor ConvEncoderLayerImpl::forward(const at::Tensor& x, const kernels::Offsets& offsets,
                                         const kernels::Dropout& dropout) const {
  const ConvBlockWeights weights = block->effective();
  const kernels::TimeWindow window{.offsets = offsets, .kernel = block->kernel()};
  const at::Tensor gated = block->forward(x, weights, window, dropout);
  return nn::watch(*this, half_sum(gated, block->residual(x, weights)));
}

ConvEncoder::ConvEncoder(const ConvEncoderOptions& options, const PartSetup& setup,
                         int64_t num_attentions)
    : options_(ConvStackOptions::of(options, setup.d_model)),
      d_model_(setup.d_model),
      first_site_(setup.first_site),
      gradient_scale_(options.scale_gradient && num_attentions > 0
                          ? 0.5 / static_cast<double>(num_attentions)
                          : 1.0),
      shell_(*this, setup, options_, setup.d_model),
      layers_(make_conv_layers<ConvEncoderLayer>(*this, setup, options_)) {}

Encoded ConvEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  const double p = options_.dropout;
  const at::Tensor embedded = shell_.rows.embed(input, dropout.at(p, first_site_ + kEmbeddingSite));
  at::Tensor x = shell_.in->forward(embedded);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i]->forward(x, input.offsets, dropout.at(p, first_site_ + i));
  }
  const at::Tensor z = kernels::scale_gradient(shell_.out->forward(x), gradient_scale_);
  return {.rows = input, .keys = z, .values = half_sum(z, embedded), .state = {}};
}

double ConvEncoder::operations(double /*length*/) const {
  return weight_operations(*this);
}

std::shared_ptr<Encoder> make_conv_encoder(const ConvEncoderOptions& options,
                                           const PartSetup& setup, int64_t num_attentions) {
  return std::make_shared<ConvEncoder>(options, setup, num_attentions);
}

}  // namespace stretto::models
