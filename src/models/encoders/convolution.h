#pragma once

#include <memory>
#include <vector>

#include "models/convolution_layers.h"
#include "models/encoder.h"

namespace stretto::models {

/// x -> (glu(convolution(dropout(x))) + x) sqrt(1/2), with windows that are centred.
class ConvEncoderLayerImpl : public torch::nn::Module {
 public:
  ConvEncoderLayerImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                       const ConvStackOptions& options, int64_t d_model);
  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets,
                     const kernels::Dropout& dropout) const;

  ConvBlock block{nullptr};
};
TORCH_MODULE(ConvEncoderLayer);

/// The encoder of ConvS2S; parameters are named like `layers.0.block.convolution.weight`.
///
///     e = dropout(embedding(ids) + position)     no factor, unless model.embedding_scale is "sqrt"
///     z = out(layers(in(e)))                     keys
///     y = (z + e) sqrt(1/2)                      values
///
/// Tokens and learned positions start N(0, 0.1) (section 3.5): scores of attention, which ConvS2S
/// does not scale, then start small at every width.
class ConvEncoder : public Encoder {
 public:
  /// @param num_attentions  layers of the decoder that attend: the gradient of z is divided by
  ///     twice as much; 0 = it stays as it is
  ConvEncoder(const ConvEncoderOptions& options, const PartSetup& setup, int64_t num_attentions);

  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  int64_t width() const override { return d_model_; }
  double operations(double length) const override;
  nn::Embedding embedding() const override { return shell_.rows.embedding.table(); }

 private:
  ConvStackOptions options_;
  int64_t d_model_;
  uint64_t first_site_;
  double gradient_scale_;
  ConvShell shell_;
  std::vector<ConvEncoderLayer> layers_;
};

/// @param num_attentions  of the decoder: its layers when it is `conv`, else 0
std::shared_ptr<Encoder> make_conv_encoder(const ConvEncoderOptions& options,
                                           const PartSetup& setup, int64_t num_attentions = 0);

}  // namespace stretto::models
