#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/bert_options.h"
#include "models/encoder.h"
#include "models/parts.h"
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"

/// The encoder of BERT (Devlin et al. 2018, arXiv:1810.04805) and of RoBERTa (Liu et al. 2019,
/// arXiv:1907.11692), which differ in nothing but their tokens. As options it has what encoders of
/// text took over since: norms in front of parts, RMSNorm, rotary positions, gated units.
///
/// Shape letters: N rows of all sequences, D model width.
namespace stretto::models {

struct BertLayerDropout;
class ResidualImpl;

/// The norm that `norm_layer` names, with `norm_epsilon`.
std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const BertOptions& options,
                                        int64_t d_model);

/// How matrices start: normal with deviation init_std, drawn again beyond two of it.
nn::InitRule rule_of_matrices(const BertOptions& options);

/// Self-attention, then the feed-forward part, each in its residual connection:
///
///     post: x = norm(x + dropout(part(x)))        pre: x = x + dropout(part(norm(x)))
class BertLayerImpl : public torch::nn::Module {
 public:
  BertLayerImpl(const nn::Init& init, const BertOptions& options);
  /// @param wanted  int64 [R]: the rows to return, [R, D]; undefined = all. Behind attention,
  ///                nothing is computed of the others
  at::Tensor forward(const at::Tensor& x, const nn::PackedRows& rows,
                     const BertLayerDropout& dropout, const at::Tensor& wanted) const;

  nn::SelfAttention self_attention{nullptr};
  nn::FeedForward ffn{nullptr};
  std::shared_ptr<ResidualImpl> self_residual, ffn_residual;
};
TORCH_MODULE(BertLayer);

/// Token vectors, positions and segments, their norm, and layers:
///
///     x = dropout(embedding_norm(embedding[id] + positions[place] + segments[segment]))
///     rows = final_norm(layers(x))        final_norm of pre-norm alone
///
/// Rows of values stand for embedding[id]. Nothing is scaled. Places start at 0 in every sequence.
/// `segments` is there unless num_segments is 0, `positions.weight` where they are learned.
/// Matrices start normal with deviation init_std, drawn again beyond two of it, the row of padding
/// at zero.
class BertEncoder : public Encoder {
 public:
  /// @param setup  its rows, pad, first_site and init; the width is that of `options`. Without rows
  ///     the encoder has no table of tokens, and reads rows of values alone: patches, say
  BertEncoder(const BertOptions& options, const PartSetup& setup);

  /// Throws Error(kBadData) for a sequence longer than learned positions, and c10::Error for a
  /// segment that has no vector.
  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  /// Rows `wanted` of forward(), int64 [R] -> [R, D], with the same masks of dropout; undefined =
  /// all. The last layer computes them alone: a head that reads few rows need not pay for all.
  at::Tensor forward_of(const at::Tensor& wanted, const nn::PackedRows& input,
                        const ForwardContext& context);
  int64_t width() const override { return sizes_.d_model; }
  double operations(double length) const override;
  /// What forward_of() saves for each row that is not wanted.
  double operations_of_unwanted() const;
  nn::Embedding embedding() const override { return embedding_; }

  int64_t num_layers() const { return sizes_.num_layers; }

 private:
  at::Tensor embed(const nn::PackedRows& input);

  BertOptions options_;
  BertSizes sizes_;
  uint64_t first_site_;
  nn::Embedding embedding_{nullptr}, segments_{nullptr};
  nn::Positions positions_{nullptr};
  nn::Norm embedding_norm_{nullptr}, final_norm_{nullptr};
  std::vector<BertLayer> layers_;
};

}  // namespace stretto::models
