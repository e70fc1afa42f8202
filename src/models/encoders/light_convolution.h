#pragma once

#include <memory>
#include <vector>

#include "models/encoder.h"
#include "models/light_convolution_layers.h"

namespace stretto::models {

/// Convolution and feed-forward part, each in its residual connection.
class LightEncoderLayerImpl : public torch::nn::Module {
 public:
  LightEncoderLayerImpl(const nn::Init& init, const LightPart& part, int64_t d_model,
                        int64_t kernel);
  at::Tensor forward(at::Tensor x, const LightConvolutionImpl::Pass& pass,
                     const LayerDropout& dropout) const;

  LightConvolution convolution{nullptr};
  nn::FeedForward ffn{nullptr};
  Residual convolution_residual{nullptr}, ffn_residual{nullptr};
};
TORCH_MODULE(LightEncoderLayer);

/// An encoder of lightweight or dynamic convolutions, with windows that are centred; parameters are
/// named like `layers.0.convolution.filters`.
class LightEncoder : public Encoder {
 public:
  LightEncoder(const LightPart& part, const PartSetup& setup);

  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  int64_t width() const override { return d_model_; }
  double operations(double length) const override;
  nn::Embedding embedding() const override { return shell_.embedding.table(); }

 private:
  LightPart part_;
  int64_t d_model_;
  uint64_t first_site_;
  StackShell shell_;
  std::vector<LightEncoderLayer> layers_;
};

std::shared_ptr<Encoder> make_light_encoder(const LightEncoderOptions& options,
                                            const PartSetup& setup);
std::shared_ptr<Encoder> make_dynamic_encoder(const DynamicEncoderOptions& options,
                                              const PartSetup& setup);

}  // namespace stretto::models
