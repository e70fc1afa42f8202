#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/decoder.h"
#include "models/light_convolution_layers.h"

namespace stretto::models {

/// How a decoder layer looks around: over whole sequences in training, over caches in decoding.
struct LightDecoderPass {
  LightConvolutionImpl::Pass convolution;
  std::function<at::Tensor(const at::Tensor& q)> attend;  ///< [Nt, D] -> [Nt, D]
};

/// Causal convolution, attention over the encoder's rows, and feed-forward part.
class LightDecoderLayerImpl : public torch::nn::Module {
 public:
  LightDecoderLayerImpl(const nn::Init& init, const LightPart& part, int64_t d_model,
                        int64_t kernel);
  at::Tensor forward(at::Tensor x, const LightDecoderPass& pass, const LayerDropout& dropout) const;

  LightConvolution convolution{nullptr};
  nn::CrossAttention cross_attention{nullptr};
  nn::FeedForward ffn{nullptr};
  Residual convolution_residual{nullptr}, cross_residual{nullptr}, ffn_residual{nullptr};
};
TORCH_MODULE(LightDecoderLayer);

/// A decoder of lightweight or dynamic convolutions, whose windows end at their own row; parameters
/// are named like `layers.0.convolution.filters`. The memory may be any encoder's that is d_model
/// wide.
class LightDecoder : public Decoder {
 public:
  LightDecoder(const LightPart& part, double attention_dropout, const PartSetup& setup);

  at::Tensor forward(const nn::PackedRows& input, const Encoded& memory,
                     const ForwardContext& context) override;
  std::unique_ptr<StepDecoder> start(const Encoded& memory, int64_t lanes_per_source) override;
  std::vector<at::Tensor> attention(const nn::PackedRows& input, const Encoded& memory,
                                    int64_t layer) override;
  int64_t width() const override { return d_model_; }
  double operations(double length, double memory_length) const override;
  double memory_operations() const override;
  nn::Embedding embedding() const override { return shell_.embedding.table(); }
  int64_t max_length() const override;  ///< max_positions where they are learned

 private:
  friend class LightStepDecoder;
  /// Called with the query and key-value rows of each layer's attention over the memory.
  using Observer = std::function<void(int64_t layer, const at::Tensor& q, const at::Tensor& kv)>;
  at::Tensor run(const nn::PackedRows& input, const Encoded& memory, const ForwardContext& context,
                 const Observer& observe);

  LightPart part_;
  int64_t d_model_;
  uint64_t first_site_;
  StackShell shell_;
  std::vector<LightDecoderLayer> layers_;
};

std::shared_ptr<Decoder> make_light_decoder(const LightDecoderOptions& options,
                                            const PartSetup& setup);
std::shared_ptr<Decoder> make_dynamic_decoder(const DynamicDecoderOptions& options,
                                              const PartSetup& setup);

}  // namespace stretto::models
