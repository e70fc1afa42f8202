#include "models/encoders/bert.h"

#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/container/modulelist.h>

#include <string>

#include "models/operations.h"
#include "models/token_embedding.h"
#include "models/transformer_layers.h"
#include "nn/lora.h"

namespace stretto::models {

/// Dropout of a layer's places, bound to one forward pass.
struct BertLayerDropout {
  const BertOptions& options;
  const nn::DropoutSource& source;
  uint64_t first_site;

  enum Place : uint64_t { kAttention, kAttentionWeights, kFfn, kFfnInner, kPlaces };
  kernels::Dropout at(double p, Place place) const { return source.at(p, first_site + place); }
};

std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const BertOptions& options,
                                        int64_t d_model) {
  if (options.norm_layer == "rms_norm") {
    return std::make_shared<nn::RmsNormImpl>(init, d_model, /*zero_gamma=*/false,
                                             options.norm_epsilon);
  }
  return std::make_shared<nn::LayerNormImpl>(init, d_model, /*zero_gamma=*/false,
                                             options.norm_epsilon);
}

nn::InitRule rule_of_matrices(const BertOptions& options) {
  return {.distribution = nn::Distribution::kTruncatedNormal, .number = options.init_std};
}

BertLayerImpl::BertLayerImpl(const nn::Init& init, const BertOptions& options) {
  const BertSizes sizes = sizes_of(options);
  const auto residual = [&](const std::string& name) {
    const nn::Init place = init.child(name);
    return register_module(
        name, std::make_shared<ResidualImpl>(place, options.norm,
                                             make_norm(place.child("norm"), options, sizes.d_model),
                                             sizes.d_model));
  };
  self_attention = register_module(
      "self_attention",
      nn::SelfAttention(init.child("self_attention"), nn::AttentionOptions{
                                                          .d_model = sizes.d_model,
                                                          .num_heads = sizes.num_heads,
                                                          .rotary = options.positions == "rotary",
                                                          .head_dim = options.head_dim,
                                                      }));
  ffn = register_module(
      "ffn", nn::FeedForward(init.child("ffn"), sizes.d_model, sizes.ffn_dim, options.activation));
  self_residual = residual("self_residual");
  ffn_residual = residual("ffn_residual");
}

at::Tensor BertLayerImpl::forward(const at::Tensor& x, const nn::PackedRows& rows,
                                  const BertLayerDropout& dropout, const at::Tensor& wanted) const {
  using D = BertLayerDropout;
  const BertOptions& o = dropout.options;
  const auto kept = [&](const at::Tensor& all) {
    return wanted.defined() && all.defined() ? all.index_select(0, wanted) : all;
  };
  nn::DropoutSource source = dropout.source;
  source.row_keys = kept(source.row_keys);
  const BertLayerDropout behind{o, source, dropout.first_site};
  const at::Tensor attended = self_residual->forward(
      x, kept(x), behind.at(o.dropout, D::kAttention), [&](const at::Tensor& h) {
        const at::Tensor all = self_attention->attend(
            h, rows, /*causal=*/false, dropout.at(o.attention_dropout, D::kAttentionWeights));
        const nn::LoraDropoutScope lora(source);
        return self_attention->out->forward(kept(all), kernels::Storage::kRounded);
      });
  const nn::LoraDropoutScope lora(source);
  return ffn_residual->forward(attended, behind.at(o.dropout, D::kFfn), [&](const at::Tensor& h) {
    return ffn->forward(h, behind.at(o.activation_dropout, D::kFfnInner));
  });
}

BertEncoder::BertEncoder(const BertOptions& options, const PartSetup& setup)
    : options_(options), sizes_(sizes_of(options)), first_site_(setup.first_site) {
  const nn::InitRule drawn = rule_of_matrices(options);
  const nn::Init init = setup.init.with_linear_rule(drawn);
  const int64_t d = sizes_.d_model;
  if (setup.rows > 0) {
    embedding_ = register_module(
        "embedding", nn::Embedding(init.child("embedding"), setup.rows, d, setup.pad, drawn));
  }
  positions_ = register_module(
      "positions",
      nn::Positions(init.child("positions"), options.positions, d, options.max_positions, drawn));
  if (options.num_segments > 0) {
    segments_ = register_module(
        "segments", nn::Embedding(init.child("segments"), options.num_segments, d, -1, drawn));
  }
  embedding_norm_ =
      register_module("embedding_norm", make_norm(init.child("embedding_norm"), options, d));
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < sizes_.num_layers; ++i) {
    layers_.push_back(BertLayer(init.child("layers").child(std::to_string(i)), options));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  if (options.norm == "pre") {
    final_norm_ = register_module("final_norm", make_norm(init.child("final_norm"), options, d));
  }
}

at::Tensor BertEncoder::embed(const nn::PackedRows& input) {
  TORCH_CHECK(input.values.defined() || embedding_,
              "[bert] the encoder has no table of tokens (PartSetup::rows = 0), and is given ids");
  const at::Tensor& like = input.values.defined() ? input.values : embedding_->weight;
  at::Tensor place = positions_->forward(input.positions, input.offsets.max_length, like);
  if (segments_) {
    const at::Tensor segments =
        input.segments.defined() ? input.segments : at::zeros_like(input.positions);
    place = segments_->forward(segments, place, /*dropped=*/{}, nn::RowScale::kOne);
  }
  if (input.values.defined()) return vectors_of_values(input, place, sizes_.d_model);
  return embedding_->forward(input.ids, place, input.dropped_words, nn::RowScale::kOne);
}

Encoded BertEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  return {
      .rows = input, .keys = forward_of(/*wanted=*/{}, input, context), .values = {}, .state = {}};
}

at::Tensor BertEncoder::forward_of(const at::Tensor& wanted, const nn::PackedRows& input,
                                   const ForwardContext& context) {
  // No kernel is asked for no rows.
  if (wanted.defined() && wanted.numel() == 0) {
    return forward_of({}, input, context).index_select(0, wanted);
  }
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  const nn::LoraDropoutScope lora(dropout);
  at::Tensor x = kernels::dropout(embedding_norm_->forward(embed(input)),
                                  dropout.at(options_.dropout, first_site_ + kEmbeddingSite));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const uint64_t site = first_site_ + i * uint64_t{BertLayerDropout::kPlaces};
    const bool is_last = i + 1 == layers_.size();
    x = layers_[i]->forward(x, input, {options_, dropout, site}, is_last ? wanted : at::Tensor());
  }
  return final_norm_ ? final_norm_->forward(x) : x;
}

double BertEncoder::operations_of_unwanted() const {
  const auto& last = layers_.back();
  return weight_operations(*last) - weight_operations(*last->self_attention->qkv);
}

double BertEncoder::operations(double length) const {
  const auto width = static_cast<double>(head_width_of(options_) * sizes_.num_heads),
             layers = static_cast<double>(sizes_.num_layers);
  return weight_operations(*this) + layers * attention_operations(width, width, length);
}

}  // namespace stretto::models
