#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "models/decoder.h"
#include "models/distance_bias.h"
#include "models/parallel_residual.h"
#include "models/transformer_layers.h"

namespace stretto::models {

/// How a decoder layer attends: over whole sequences in training, over a cache in decoding.
struct DecoderAttention {
  std::function<at::Tensor(const at::Tensor& x)> self;   ///< [Nt, D] -> [Nt, D]
  std::function<at::Tensor(const at::Tensor& x)> cross;  ///< the same; not called without memory
};

/// Masked self-attention, attention over the encoder's output, and feed-forward part, each in its
/// residual connection, or all in one. A layer without memory has no second part, and no parameters
/// of it.
class TransformerDecoderLayerImpl : public torch::nn::Module {
 public:
  /// @param attends  whether there is a memory
  TransformerDecoderLayerImpl(const nn::Init& init, const TransformerPart& options, int64_t d_model,
                              bool attends);
  at::Tensor forward(at::Tensor x, const DecoderAttention& attention,
                     const LayerDropout& dropout) const;

  nn::SelfAttention self_attention{nullptr};
  nn::CrossAttention cross_attention{nullptr};  ///< null without memory
  nn::FeedForward ffn{nullptr};
  Residual self_residual{nullptr}, cross_residual{nullptr}, ffn_residual{nullptr};
  ParallelResidual residual{nullptr};  ///< in their place with parallel_residual
};
TORCH_MODULE(TransformerDecoderLayer);

/// The Transformer's decoder; parameters are named like `layers.0.cross_attention.kv.weight`.
///
/// Without memory (PartSetup::memory_width) it is that of GPT (Radford et al. 2018), in the style
/// of layers that its options say: it has no `cross_attention` and no `cross_residual`.
class TransformerDecoder : public Decoder {
 public:
  TransformerDecoder(const TransformerPart& options, const PartSetup& setup);

  at::Tensor forward(const nn::PackedRows& input, const Encoded& memory,
                     const ForwardContext& context) override;
  std::unique_ptr<StepDecoder> start(const Encoded& memory, int64_t lanes_per_source) override;
  /// On a CPU, with a memory, and not with relative positions of kind "shaw".
  std::unique_ptr<StreamDecoder> start_stream() override;
  std::vector<at::Tensor> attention(const nn::PackedRows& input, const Encoded& memory,
                                    int64_t layer) override;
  int64_t width() const override { return d_model_; }
  double operations(double length, double memory_length) const override;
  double memory_operations() const override;
  nn::Embedding embedding() const override { return shell_.embedding.table(); }
  int64_t max_length() const override;  ///< max_positions where they are learned

 private:
  friend class TransformerStepDecoder;
  friend class TransformerStreamDecoder;
  /// Called with the query and key-value rows of each layer's attention over the memory.
  using Observer = std::function<void(int64_t layer, const at::Tensor& q, const at::Tensor& kv)>;
  at::Tensor run(const nn::PackedRows& input, const Encoded& memory, const ForwardContext& context,
                 const Observer& observe);
  /// That there are rows to attend to exactly where it attends.
  void check_memory(const Encoded& memory) const;

  TransformerPart options_;
  int64_t d_model_;
  uint64_t first_site_;
  bool attends_;  ///< to a memory
  StackShell shell_;
  nn::DistanceBias distance_bias_;  ///< null: positions are of another kind
  std::vector<TransformerDecoderLayer> layers_;
};

}  // namespace stretto::models
