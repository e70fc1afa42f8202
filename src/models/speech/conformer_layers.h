#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "models/speech/conformer_options.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/conv1d.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/packed_rows.h"

/// What a layer of a Conformer is made of (Gulati et al. 2020, arXiv:2005.08100, section 2).
///
/// Shape letters: N rows of all sequences, D model width, H heads, W = D / H their width, K taps, R
/// distances between rows.
namespace stretto::models {

/// Dropout of the places of a layer, bound to one forward pass.
struct ConformerDropout {
  const ConformerOptions& options;
  nn::DropoutSource source;
  uint64_t first_site = 0;

  enum Place : uint64_t {
    kFirst,
    kFirstInner,
    kAttended,
    kAttention,
    kConvolved,
    kLast,
    kLastInner,
    kPlaces
  };
  kernels::Dropout at(double p, Place place) const { return source.at(p, first_site + place); }
};

/// A vector for each distance between a query and a key in sequences of up to `longest` rows, for
/// RelativePositions. Row c is of query i and key j with i - j = d = longest - 1 - c: sin(d w_k) in
/// its first half, cos(d w_k) in the second, w_k = 10000^(-2 k / D). Computed in fp64, rounded
/// once.
/// @return  [R, D], R = 2 longest - 1 (at least 1), like `like` in dtype and device
at::Tensor distance_vectors(int64_t longest, int64_t d_model, const at::Tensor& like);

/// Relative positions of Transformer-XL (Dai et al. 2019, arXiv:1901.02860, section 3.3), of query
/// i and key j in head h:
///
///     score = ((q_i + content_bias) . k_j + (q_i + position_bias) . projection(r_{i - j})) /
///     sqrt(W)
///
/// Both biases are [D], H parts of W numbers, and start at zero. `projection` has no bias.
class RelativePositionsImpl : public torch::nn::Module {
 public:
  RelativePositionsImpl(const nn::Init& init, int64_t d_model, int64_t num_heads);

  /// What distances add to scores, [N, H, R]. queries [N, D]; vectors [R, D], distance_vectors()
  kernels::DistanceBias forward(const at::Tensor& queries, const at::Tensor& vectors) const;
  /// Rows (q, k, v) [N, 3 D] with content_bias added to the queries.
  at::Tensor with_content_bias(const at::Tensor& qkv) const;

  at::Tensor content_bias, position_bias;
  nn::Linear projection{nullptr};

 private:
  int64_t num_heads_;
};
TORCH_MODULE(RelativePositions);

/// The convolution module (section 2.2), without its residual connection:
///
///     pointwise_out(silu(norm(depthwise(glu(pointwise_in(x))))))
///
/// The depthwise convolution has no bias, for a norm stands behind it. In evaluation, without
/// gradients, a batch norm is part of its filters.
class ConformerConvolutionImpl : public torch::nn::Module {
 public:
  ConformerConvolutionImpl(const nn::Init& init, const ConformerOptions& options);
  /// x [N, D], already normed -> [N, D].
  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets) const;

 private:
  nn::Linear pointwise_in_{nullptr}, pointwise_out_{nullptr};
  nn::Conv1d depthwise_{nullptr};
  nn::BatchNorm batch_norm_{nullptr};  // `norm`, or null
  nn::LayerNorm layer_norm_{nullptr};  // `norm` in its place
};
TORCH_MODULE(ConformerConvolution);

/// One layer (equation 1); norms stand in front of parts, and one behind them all:
///
///     x = x + ffn1(norm(x)) / 2
///     x = x + attention(norm(x))
///     x = x + convolution(norm(x))
///     y = final_norm(x + ffn2(norm(x)) / 2)
///
/// Feed-forward parts have the activation x sigmoid(x) (SiLU, Swish).
class ConformerLayerImpl : public torch::nn::Module {
 public:
  ConformerLayerImpl(const nn::Init& init, const ConformerOptions& options);

  /// x [N, D] -> [N, D]. @param vectors  distance_vectors(); undefined with rotary positions
  at::Tensor forward(const at::Tensor& x, const nn::PackedRows& rows, const at::Tensor& vectors,
                     const ConformerDropout& dropout) const;
  /// Multiplications and additions for one row in sequences of `length` rows.
  double operations(double length) const;

 private:
  at::Tensor attended(const at::Tensor& x, const nn::PackedRows& rows, const at::Tensor& vectors,
                      const kernels::Dropout& dropout) const;

  nn::LayerNorm ffn1_norm_{nullptr}, attention_norm_{nullptr}, convolution_norm_{nullptr},
      ffn2_norm_{nullptr}, final_norm_{nullptr};
  nn::FeedForward ffn1_{nullptr}, ffn2_{nullptr};
  nn::SelfAttention attention_{nullptr};
  RelativePositions positions_{nullptr};  // null with rotary positions
  ConformerConvolution convolution_{nullptr};
};
TORCH_MODULE(ConformerLayer);

}  // namespace stretto::models
