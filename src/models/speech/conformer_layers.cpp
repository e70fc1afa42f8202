#include "models/speech/conformer_layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "kernels/gemm/packed_weights.h"
#include "models/operations.h"
#include "nn/init_rules.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// x + dropout(part) / 2.
at::Tensor add_half(const at::Tensor& x, const at::Tensor& part, const kernels::Dropout& dropout) {
  const at::Tensor wide = kernels::widened(part);
  return dropout.active() ? kernels::dropout_add(wide * 0.5, x, dropout) : at::add(x, wide, 0.5);
}

/// How PyTorch starts filters of K taps: uniform in ±K^-0.5.
nn::InitRule rule_of_filters(int64_t kernel) {
  return {.distribution = nn::Distribution::kUniform,
          .number = 1.0 / std::sqrt(static_cast<double>(kernel))};
}

}  // namespace

at::Tensor distance_vectors(int64_t longest, int64_t d_model, const at::Tensor& like) {
  const int64_t farthest = std::max<int64_t>(longest, 1) - 1;
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor distances = at::arange(farthest, -farthest - 1, -1, wide);
  const double step = -2.0 * std::log(10000.0) / static_cast<double>(d_model);
  const at::Tensor frequencies = (at::arange(d_model / 2, wide) * step).exp();
  const at::Tensor angles = at::outer(distances, frequencies);
  return at::cat({angles.sin(), angles.cos()}, 1).to(like.device(), like.scalar_type());
}

RelativePositionsImpl::RelativePositionsImpl(const nn::Init& init, int64_t d_model,
                                             int64_t num_heads)
    : num_heads_(num_heads) {
  content_bias = register_parameter("content_bias", init.constant("content_bias", d_model, 0.0));
  position_bias = register_parameter("position_bias", init.constant("position_bias", d_model, 0.0));
  projection = register_module("projection", nn::Linear(init.child("projection"), d_model, d_model,
                                                        nn::LinearOptions{.bias = false}));
}

kernels::DistanceBias RelativePositionsImpl::forward(const at::Tensor& queries,
                                                     const at::Tensor& vectors) const {
  const int64_t width = queries.size(1) / num_heads_;
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  const at::Tensor shifted = (queries + position_bias) * scale;
  const at::Tensor projected = projection->forward(vectors);
  // Layouts of these factors are of no use to a later product, and are not kept.
  kernels::PackedWeights for_now;
  const kernels::PackedWeightsScope scope(for_now);
  std::vector<at::Tensor> products;
  for (int64_t head = 0; head < num_heads_; ++head) {
    products.push_back(kernels::linear(shifted.narrow(1, head * width, width).contiguous(),
                                       projected.narrow(1, head * width, width).contiguous()));
  }
  return {.table = nn::watch(*this, at::stack(products, 1)), .zero = (vectors.size(0) - 1) / 2};
}

at::Tensor RelativePositionsImpl::with_content_bias(const at::Tensor& qkv) const {
  const at::Tensor none = at::zeros({qkv.size(1) - content_bias.size(0)}, content_bias.options());
  return qkv + at::cat({content_bias, none});
}

ConformerConvolutionImpl::ConformerConvolutionImpl(const nn::Init& init,
                                                   const ConformerOptions& options) {
  const ConformerSizes sizes = sizes_of(options);
  const int64_t d = sizes.d_model;
  pointwise_in_ = register_module("pointwise_in", nn::Linear(init.child("pointwise_in"), d, 2 * d,
                                                             nn::LinearOptions{.parts = 2}));
  const nn::Conv1dOptions filters{
      .kernel = sizes.kernel, .depthwise = true, .rule = rule_of_filters(sizes.kernel)};
  depthwise_ = register_module("depthwise", nn::Conv1d(init.child("depthwise"), d, d, filters));
  if (options.convolution_norm == "batch_norm") {
    const nn::BatchNormOptions batch{.momentum = options.norm_momentum,
                                     .epsilon = options.norm_epsilon,
                                     .single_by_running = true};
    batch_norm_ = register_module("norm", nn::BatchNorm(init.child("norm"), d, batch));
  } else {
    layer_norm_ = register_module("norm", nn::LayerNorm(init.child("norm"), d));
  }
  pointwise_out_ =
      register_module("pointwise_out", nn::Linear(init.child("pointwise_out").of_residual(), d, d));
}

at::Tensor ConformerConvolutionImpl::forward(const at::Tensor& x,
                                             const kernels::Offsets& offsets) const {
  const at::Tensor gated = kernels::glu(pointwise_in_->product(x), pointwise_in_->bias, {});
  const at::Tensor normed = batch_norm_
                                ? nn::convolved_rows(gated, offsets, depthwise_, batch_norm_)
                                : layer_norm_->forward(depthwise_->forward(gated, offsets));
  return pointwise_out_->forward(nn::watch(*this, at::silu(normed)));
}

ConformerLayerImpl::ConformerLayerImpl(const nn::Init& init, const ConformerOptions& options) {
  const ConformerSizes sizes = sizes_of(options);
  const auto norm = [&](const char* name) {
    return register_module(name, nn::LayerNorm(init.child(name), sizes.d_model));
  };
  const auto ffn = [&](const char* name) {
    return register_module(name,
                           nn::FeedForward(init.child(name), sizes.d_model, sizes.ffn_dim, "silu"));
  };
  ffn1_norm_ = norm("ffn1_norm");
  ffn1_ = ffn("ffn1");
  attention_norm_ = norm("attention_norm");
  attention_ = register_module(
      "attention",
      nn::SelfAttention(init.child("attention"),
                        nn::AttentionOptions{.d_model = sizes.d_model,
                                             .num_heads = sizes.num_heads,
                                             .rotary = options.positions == "rotary"}));
  if (options.positions == "relative") {
    positions_ = register_module(
        "positions", RelativePositions(init.child("positions"), sizes.d_model, sizes.num_heads));
  }
  convolution_norm_ = norm("convolution_norm");
  convolution_ =
      register_module("convolution", ConformerConvolution(init.child("convolution"), options));
  ffn2_norm_ = norm("ffn2_norm");
  ffn2_ = ffn("ffn2");
  final_norm_ = norm("final_norm");
}

at::Tensor ConformerLayerImpl::attended(const at::Tensor& x, const nn::PackedRows& rows,
                                        const at::Tensor& vectors,
                                        const kernels::Dropout& dropout) const {
  if (!positions_) return attention_->forward(x, rows, /*causal=*/false, dropout);
  const at::Tensor qkv = kernels::widened(attention_->project(x, rows.positions));
  const kernels::DistanceBias bias = positions_->forward(qkv.narrow(1, 0, x.size(1)), vectors);
  const at::Tensor heads = attention_->attend_projected(positions_->with_content_bias(qkv), rows,
                                                        /*causal=*/false, dropout, bias);
  return attention_->out->forward(heads, kernels::Storage::kRounded);
}

at::Tensor ConformerLayerImpl::forward(const at::Tensor& x, const nn::PackedRows& rows,
                                       const at::Tensor& vectors,
                                       const ConformerDropout& dropout) const {
  using Place = ConformerDropout::Place;
  const ConformerOptions& o = dropout.options;
  const at::Tensor first =
      ffn1_->forward(ffn1_norm_->forward(x), dropout.at(o.activation_dropout, Place::kFirstInner));
  at::Tensor y = add_half(x, first, dropout.at(o.dropout, Place::kFirst));
  y = kernels::dropout_add(attended(attention_norm_->forward(y), rows, vectors,
                                    dropout.at(o.attention_dropout, Place::kAttention)),
                           y, dropout.at(o.dropout, Place::kAttended));
  y = kernels::dropout_add(convolution_->forward(convolution_norm_->forward(y), rows.offsets), y,
                           dropout.at(o.dropout, Place::kConvolved));
  const at::Tensor last =
      ffn2_->forward(ffn2_norm_->forward(y), dropout.at(o.activation_dropout, Place::kLastInner));
  y = add_half(y, last, dropout.at(o.dropout, Place::kLast));
  return nn::watch(*this, final_norm_->forward(y));
}

double ConformerLayerImpl::operations(double length) const {
  const auto width = static_cast<double>(ffn1_norm_->weight.size(0));
  double sum = weight_operations(*this) + attention_operations(width, width, length);
  // A query meets the vectors of all distances. They are projected once a batch, which is counted
  // here as once a row.
  if (positions_) sum += 2 * width * (2 * length - 1);
  return sum;
}

}  // namespace stretto::models
