#pragma once

#include <vector>

#include "models/distance_bias.h"
#include "models/encoder.h"
#include "models/parallel_residual.h"
#include "models/transformer_layers.h"

namespace stretto::models {

/// Self-attention and feed-forward part, each in its residual connection, or both in one.
class TransformerEncoderLayerImpl : public torch::nn::Module {
 public:
  TransformerEncoderLayerImpl(const nn::Init& init, const TransformerPart& options,
                              int64_t d_model);
  at::Tensor forward(at::Tensor x, const nn::PackedRows& rows, const LayerDropout& dropout,
                     const kernels::DistanceBias& bias) const;

  nn::SelfAttention self_attention{nullptr};
  nn::FeedForward ffn{nullptr};
  Residual self_residual{nullptr}, ffn_residual{nullptr};
  ParallelResidual residual{nullptr};  ///< in their place with parallel_residual
};
TORCH_MODULE(TransformerEncoderLayer);

/// The Transformer's encoder; parameters are named like `layers.0.self_attention.qkv.weight`.
class TransformerEncoder : public Encoder {
 public:
  TransformerEncoder(const TransformerPart& options, const PartSetup& setup);

  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  int64_t width() const override { return d_model_; }
  double operations(double length) const override;
  nn::Embedding embedding() const override { return shell_.embedding.table(); }

 private:
  TransformerPart options_;
  int64_t d_model_;
  uint64_t first_site_;
  StackShell shell_;
  nn::DistanceBias distance_bias_;  ///< null: positions are of another kind
  std::vector<TransformerEncoderLayer> layers_;
};

}  // namespace stretto::models
