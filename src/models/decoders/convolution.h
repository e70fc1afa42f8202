#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/convolution_layers.h"
#include "models/decoder.h"

namespace stretto::models {

/// What a decoder layer multiplies by; see ConvBlockWeights.
struct ConvDecoderWeights {
  ConvBlockWeights block;
  nn::TimeConvolutionWeights query, out;
};

/// How a decoder layer looks around: over whole sequences in training, over caches in decoding.
struct ConvDecoderPass {
  std::function<at::Tensor(const at::Tensor& x)> gated;   ///< [Nt, C'] -> [Nt, C]
  std::function<at::Tensor(const at::Tensor& q)> attend;  ///< [Nt, D] -> [Nt, D]
};

/// Multi-step attention (section 3.3): with h the gated rows [N, C] and e the embedded tokens,
///
///     q = (query(h) + e) sqrt(1/2)                           [N, D]
///     h' = (out(sqrt(m) softmax(q keys^T) values) + h) sqrt(1/2)
///
/// Where `model.adapter` names the attention, out(…) above stands for adapter(out(…)).
class ConvAttentionImpl : public torch::nn::Module {
 public:
  ConvAttentionImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                    const ConvStackOptions& options, int64_t d_model);
  at::Tensor forward(const at::Tensor& h, const at::Tensor& embedded,
                     const ConvDecoderWeights& weights, const ConvDecoderPass& pass) const;

  nn::TimeConvolution query{nullptr}, out{nullptr};
  nn::Adapter adapter{nullptr};  ///< null without one
};
TORCH_MODULE(ConvAttention);

/// x -> (attention(glu(convolution(dropout(x)))) + x) sqrt(1/2); windows end at their own row.
class ConvDecoderLayerImpl : public torch::nn::Module {
 public:
  ConvDecoderLayerImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                       const ConvStackOptions& options, int64_t d_model);
  ConvDecoderWeights effective() const;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& embedded,
                     const ConvDecoderWeights& weights, const ConvDecoderPass& pass) const;

  ConvBlock block{nullptr};
  ConvAttention attention{nullptr};
};
TORCH_MODULE(ConvDecoderLayer);

/// The decoder of ConvS2S, which attends in every layer; parameters are named like
/// `layers.0.attention.query.weight`. The memory may be any encoder's that is d_model wide.
class ConvDecoder : public Decoder {
 public:
  ConvDecoder(const ConvDecoderOptions& options, const PartSetup& setup);

  at::Tensor forward(const nn::PackedRows& input, const Encoded& memory,
                     const ForwardContext& context) override;
  std::unique_ptr<StepDecoder> start(const Encoded& memory, int64_t lanes_per_source) override;
  std::vector<at::Tensor> attention(const nn::PackedRows& input, const Encoded& memory,
                                    int64_t layer) override;
  int64_t width() const override { return width_; }
  double operations(double length, double memory_length) const override;
  /// None: keys and values are the encoder's rows as they are.
  double memory_operations() const override { return 0; }
  nn::Embedding embedding() const override { return shell_.rows.embedding.table(); }
  int64_t max_length() const override;  ///< max_positions where they are learned

 private:
  friend class ConvStepDecoder;
  /// Called with the queries of each layer.
  using Observer = std::function<void(int64_t layer, const at::Tensor& q)>;
  at::Tensor run(const nn::PackedRows& input, const Encoded& memory, const ForwardContext& context,
                 const Observer& observe);

  ConvStackOptions options_;
  int64_t width_;
  uint64_t first_site_;
  ConvShell shell_;
  std::vector<ConvDecoderLayer> layers_;
};

std::shared_ptr<Decoder> make_conv_decoder(const ConvDecoderOptions& options,
                                           const PartSetup& setup);

}  // namespace stretto::models
