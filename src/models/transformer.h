#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <functional>
#include <memory>
#include <vector>

#include "models/registry.h"
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"
#include "nn/watch.h"

/// The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017,
/// arXiv:1706.03762), with fairseq's choices (Ott et al. 2018, arXiv:1806.00187).
///
/// Shape letters: Ns, Nt source and target tokens of all sequences; D model width; V vocabulary.
/// Rows are packed: sequences stand one after the other, nothing is padded.
namespace stretto::models {

/// Dropout of a layer's places, bound to one forward pass.
struct LayerDropout {
  const TransformerOptions& options;
  const nn::DropoutSource& source;
  uint64_t first_site;

  enum Place : uint64_t { kSelf, kSelfWeights, kCross, kCrossWeights, kFfn, kFfnInner, kPlaces };
  kernels::Dropout at(double p, Place place) const { return source.at(p, first_site + place); }
};

/// The norm that `model.norm_layer` names. Batch norm has the constants of OpenSeq2Seq's
/// Transformer (momentum 0.95 in its convention, epsilon 1e-4); in training it sees every token of
/// the micro-batch, later ones of a decoder's sequences too.
std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const TransformerOptions& options,
                                        bool zero_gamma);

/// Residual connection around one part of a layer (section 5.4, and where the norm stands):
///     post: norm(x + dropout(part(x)))        pre: x + dropout(part(norm(x)))
///     res_post: x + dropout(norm(part(x)))    (Liu et al. 2022, arXiv:2111.09883, section 3.2)
/// With `zero_gamma` a res_post part is the identity at first.
class ResidualImpl : public torch::nn::Module {
 public:
  ResidualImpl(const nn::Init& init, const TransformerOptions& options);

  template <class Part>
  at::Tensor forward(const at::Tensor& x, const kernels::Dropout& dropout, Part part) const {
    switch (place_) {
      case Place::kPre:
        return nn::watch(*this, kernels::dropout_add(part(norm->forward(x)), x, dropout));
      case Place::kResPost:
        return nn::watch(*this, kernels::dropout_add(norm->forward(part(x)), x, dropout));
      case Place::kPost:
        break;
    }
    return norm->forward(kernels::dropout_add(part(x), x, dropout));
  }

  nn::Norm norm{nullptr};

 private:
  enum class Place : uint8_t { kPost, kPre, kResPost };
  Place place_;
};
TORCH_MODULE(Residual);

/// Self-attention and feed-forward part, each in its residual connection.
class EncoderLayerImpl : public torch::nn::Module {
 public:
  EncoderLayerImpl(const nn::Init& init, const TransformerOptions& options);
  at::Tensor forward(at::Tensor x, const nn::PackedRows& src, const LayerDropout& dropout) const;

  nn::SelfAttention self_attention{nullptr};
  nn::FeedForward ffn{nullptr};
  Residual self_residual{nullptr}, ffn_residual{nullptr};
};
TORCH_MODULE(EncoderLayer);

/// How a decoder layer attends: over whole sequences in training, over a cache in decoding.
struct DecoderAttention {
  std::function<at::Tensor(const at::Tensor& x)> self;   ///< [Nt, D] -> [Nt, D]
  std::function<at::Tensor(const at::Tensor& x)> cross;  ///< [Nt, D] -> [Nt, D]
};

/// Masked self-attention, attention over the encoder's output, and feed-forward part.
class DecoderLayerImpl : public torch::nn::Module {
 public:
  DecoderLayerImpl(const nn::Init& init, const TransformerOptions& options);
  at::Tensor forward(at::Tensor x, const DecoderAttention& attention,
                     const LayerDropout& dropout) const;

  nn::SelfAttention self_attention{nullptr};
  nn::CrossAttention cross_attention{nullptr};
  nn::FeedForward ffn{nullptr};
  Residual self_residual{nullptr}, cross_residual{nullptr}, ffn_residual{nullptr};
};
TORCH_MODULE(DecoderLayer);

/// A stack's shell: embedding and positions below its layers, a last norm above them unless
/// post-norm.
class StackImpl : public torch::nn::Module {
 public:
  /// @param shared  the embedding of another stack to use too; null = one's own of `rows` rows
  StackImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
            nn::Embedding shared);

  /// dropout(embedding * sqrt(D) + position); ids and positions int64 [N] -> [N, D].
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, int64_t max_length,
                   const kernels::Dropout& dropout);
  /// The last norm of a stack whose layers do not end in one; x itself otherwise.
  at::Tensor finish(const at::Tensor& x) const;

  nn::Embedding embedding{nullptr};
  nn::Positions positions{nullptr};
  nn::Norm final_norm{nullptr};
};

class EncoderImpl : public StackImpl {
 public:
  EncoderImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
              nn::Embedding shared);
  /// -> the encoder's output ("memory") [Ns, D].
  at::Tensor forward(const nn::PackedRows& src, const TransformerOptions& options,
                     const nn::DropoutSource& dropout);

  std::vector<EncoderLayer> layers;
};
TORCH_MODULE(Encoder);

class DecoderImpl : public StackImpl {
 public:
  DecoderImpl(const nn::Init& init, const TransformerOptions& options, int64_t rows,
              nn::Embedding shared);
  /// Teacher-forced. @param observe  called with each layer's cross-attention query and kv rows
  using Observer = std::function<void(int64_t layer, const at::Tensor& q, const at::Tensor& kv)>;
  at::Tensor forward(const nn::PackedRows& tgt, const at::Tensor& memory, const nn::PackedRows& src,
                     const TransformerOptions& options, const nn::DropoutSource& dropout,
                     const Observer& observe = nullptr);

  std::vector<DecoderLayer> layers;
};
TORCH_MODULE(Decoder);

/// The whole model; parameters are named like `encoder.layers.0.self_attention.qkv.weight`.
///
/// `tie_embeddings`: "all" keeps one table, `embedding.weight`; "decoder" one for each side,
/// `encoder.embedding.weight` and `decoder.embedding.weight`, the latter also projecting to the
/// vocabulary; "none" adds `output.weight`. The projection has no bias.
class Transformer : public Seq2SeqModel {
 public:
  Transformer(const TransformerOptions& options, const ModelSetup& setup, nn::OutputLoss loss);

  LossOutput loss(const data::Batch& batch, const ForwardContext& context) override;
  std::unique_ptr<decoding::StepModel> start(const data::PackedTokens& src,
                                             int64_t lanes_per_src) override;
  std::vector<VocabularyTable> vocabulary_tables() const override;
  int64_t max_target_length() const override;  ///< model.max_positions where they are learned
  std::vector<torch::Tensor> alignments(const data::Batch& batch, int64_t layer) override;

  const TransformerOptions& options() const { return options_; }
  int64_t num_classes() const { return num_classes_; }
  const at::Tensor& output_weight() const;
  c10::Device device() const { return output_weight().device(); }

  Encoder encoder{nullptr};
  Decoder decoder{nullptr};

 private:
  TransformerOptions options_;
  int64_t num_classes_;
  nn::OutputLoss loss_;
  nn::Embedding embedding_{nullptr};  ///< when all are tied
  nn::Embedding output_{nullptr};     ///< when nothing is tied
};

}  // namespace stretto::models
