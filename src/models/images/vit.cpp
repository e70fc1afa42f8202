#include "models/images/vit.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "models/images/plane_dropout.h"
#include "models/operations.h"
#include "models/parts.h"
#include "models/transformer_layers.h"
#include "nn/lora.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

enum VitSite : uint64_t { kAttended, kAttention, kPath, kFed, kFedInner, kFedPath, kVitSites };

nn::InitRule normal_rule(double stddev) {
  return {.distribution = nn::Distribution::kNormal, .number = stddev};
}

/// The part of a layer that may be left out for whole pictures. @param keys  of the rows of x
at::Tensor drop_pictures(const at::Tensor& x, int64_t pictures, const kernels::Dropout& dropout) {
  if (!dropout.active() || pictures == 0) return x;
  kernels::Dropout of_first = dropout;
  of_first.row_keys = dropout.row_keys.view({pictures, -1}).select(1, 0);
  return drop_samples(x.view({pictures, -1}), of_first).view(x.sizes());
}

}  // namespace

VitLayerImpl::VitLayerImpl(const nn::Init& init, const VitOptions& options) {
  const VitSizes sizes = sizes_of(options);
  const auto residual = [&](const std::string& name) {
    const nn::Init place = init.child(name);
    auto norm = std::make_shared<nn::LayerNormImpl>(place.child("norm"), sizes.d_model,
                                                    /*zero_gamma=*/false, options.norm_epsilon);
    return register_module(
        name, std::make_shared<ResidualImpl>(place, "pre", std::move(norm), sizes.d_model));
  };
  self_attention = register_module(
      "self_attention", nn::SelfAttention(init.child("self_attention"),
                                          nn::AttentionOptions{.d_model = sizes.d_model,
                                                               .num_heads = sizes.num_heads}));
  ffn = register_module(
      "ffn", nn::FeedForward(init.child("ffn"), sizes.d_model, sizes.ffn_dim, options.activation));
  self_residual_ = residual("self_residual");
  ffn_residual_ = residual("ffn_residual");
}

at::Tensor VitLayerImpl::forward(const at::Tensor& x, const nn::PackedRows& rows,
                                 const VitLayerDropout& dropout, const at::Tensor& wanted) const {
  const VitOptions& o = dropout.options;
  const int64_t pictures = rows.offsets.values.size(0) - 1;
  const auto kept = [&](const at::Tensor& all) {
    return wanted.defined() && all.defined() ? all.index_select(0, wanted) : all;
  };
  nn::DropoutSource source = dropout.source;
  source.row_keys = kept(source.row_keys);
  const auto at_site = [&](double p, VitSite site) {
    return source.at(p, dropout.first_site + site);
  };
  const nn::LoraDropoutScope all_rows(dropout.source);
  const at::Tensor attended =
      self_residual_->forward(x, kept(x), at_site(o.dropout, kAttended), [&](const at::Tensor& h) {
        const at::Tensor all = self_attention->attend(
            h, rows, /*causal=*/false,
            dropout.source.at(o.attention_dropout, dropout.first_site + kAttention));
        const nn::LoraDropoutScope lora(source);
        return drop_pictures(self_attention->out->forward(kept(all)), pictures,
                             at_site(dropout.drop_path, kPath));
      });
  const nn::LoraDropoutScope lora(source);
  return ffn_residual_->forward(attended, at_site(o.dropout, kFed), [&](const at::Tensor& h) {
    return drop_pictures(ffn->forward(h, at_site(o.activation_dropout, kFedInner)), pictures,
                         at_site(dropout.drop_path, kFedPath));
  });
}

Vit::Vit(const VitOptions& options, const ImagePart& part)
    : ImageModel(part, image_limits_of(options)), options_(options), sizes_(sizes_of(options)) {
  const int64_t d = sizes_.d_model, p = sizes_.patch_size;
  const auto fan_in = static_cast<double>(part.channels * p * p);
  patches_ = register_module(
      "patches",
      nn::Conv2d(
          part.init.child("patches"), part.channels, d,
          nn::Conv2dOptions{
              .kernel = p, .stride = p, .bias = true, .rule = normal_rule(std::sqrt(1 / fan_in))}));
  if (has_class_token()) {
    class_token_ = register_parameter("class_token", part.init.constant("class_token", d, 0.0));
  }
  const int64_t length = sizes_.grid() * sizes_.grid() + (has_class_token() ? 1 : 0);
  positions_ =
      register_parameter("positions", part.init.matrix("positions", length, d, normal_rule(0.02)));
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < sizes_.num_layers; ++i) {
    layers_.push_back(VitLayer(part.init.child("layers").child(std::to_string(i)), options));
    list->push_back(layers_.back());
  }
  register_module("layers", list);
  final_norm_ =
      register_module("final_norm", nn::LayerNorm(part.init.child("final_norm"), d,
                                                  /*zero_gamma=*/false, options.norm_epsilon));
  const nn::InitRule zero{.distribution = nn::Distribution::kConstant, .number = 0};
  head_ = register_module(
      "head", nn::Linear(part.init.child("head").with_linear_rule(zero), d, part.num_labels));
}

bool Vit::has_dropout() const {
  return options_.dropout > 0 || options_.attention_dropout > 0 ||
         options_.activation_dropout > 0 || options_.drop_path > 0 || options_.lora.dropout > 0;
}

int64_t Vit::rows_per_sample(int64_t height, int64_t width) const {
  const int64_t p = sizes_.patch_size;
  return (height / p) * (width / p) + (has_class_token() ? 1 : 0);
}

at::Tensor Vit::positions_of(int64_t rows, int64_t columns) const {
  const int64_t grid = sizes_.grid(), first = has_class_token() ? 1 : 0;
  if (rows == grid && columns == grid) return positions_;
  const at::Tensor plane = positions_.slice(0, first).view({1, grid, grid, -1});
  const at::Tensor resized = at::_upsample_bicubic2d_aa(plane.permute({0, 3, 1, 2}),
                                                        {rows, columns}, /*align_corners=*/false);
  const at::Tensor of_patches = resized.permute({0, 2, 3, 1}).reshape({rows * columns, -1});
  return first == 0 ? of_patches : at::cat({positions_.slice(0, 0, 1), of_patches});
}

at::Tensor Vit::embed(const at::Tensor& pixels) const {
  const at::Tensor planes = patches_->forward(pixels);
  const int64_t pictures = planes.size(0), rows = planes.size(2), columns = planes.size(3);
  at::Tensor x = planes.permute({0, 2, 3, 1}).reshape({pictures, rows * columns, sizes_.d_model});
  if (has_class_token()) {
    x = at::cat({class_token_.view({1, 1, -1}).expand({pictures, 1, -1}), x}, 1);
  }
  return x + positions_of(rows, columns);
}

nn::PackedRows Vit::packed(int64_t pictures, int64_t length, const ImageInput& input) const {
  const auto numbers = at::TensorOptions().dtype(at::kLong).device(input.pixels.device());
  return {
      .ids = {},
      .positions = at::arange(length, numbers).repeat({pictures}),
      .row_keys = input.row_keys,
      .offsets = {.values = at::arange(0, pictures * length + 1, length, numbers.dtype(at::kInt)),
                  .max_length = length}};
}

at::Tensor Vit::encode(const ImageInput& input, const ForwardContext& context) {
  const at::Tensor embedded = embed(checked(input));
  const int64_t pictures = embedded.size(0), length = embedded.size(1);
  const nn::PackedRows rows = packed(pictures, length, input);
  const nn::DropoutSource source = context.dropout(input.row_keys);
  at::Tensor x = kernels::dropout(embedded.reshape({-1, sizes_.d_model}),
                                  source.at(options_.dropout, kImageSites + kEmbeddingSite));
  const at::Tensor tokens = rows.offsets.values.slice(0, 0, pictures).to(at::kLong);
  const double last = std::max(static_cast<double>(layers_.size()) - 1, 1.0);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool is_last = i + 1 == layers_.size();
    const VitLayerDropout dropout{.options = options_,
                                  .source = source,
                                  .drop_path = options_.drop_path * static_cast<double>(i) / last,
                                  .first_site = kImageSites + i * uint64_t{kVitSites}};
    x = layers_[i]->forward(x, rows, dropout, is_last && has_class_token() ? tokens : at::Tensor());
  }
  return final_norm_->forward(x).view({pictures, has_class_token() ? 1 : length, sizes_.d_model});
}

at::Tensor Vit::forward(const ImageInput& input, const ForwardContext& context) {
  const at::Tensor rows = encode(input, context);
  return nn::watch(*this, head_->forward(has_class_token() ? rows.select(1, 0) : rows.mean(1)));
}

double Vit::operations(int64_t height, int64_t width) const {
  const auto length = static_cast<double>(rows_per_sample(height, width));
  const auto d = static_cast<double>(sizes_.d_model);
  double sum = patches_->operations({height, width}) + head_->operations();
  for (const VitLayer& layer : layers_) {
    sum += length * (weight_operations(*layer) + attention_operations(d, d, length));
  }
  if (!has_class_token()) return sum;
  // The last layer is computed for class tokens alone behind its attention.
  const VitLayer& last = layers_.back();
  return sum -
         (length - 1) * (weight_operations(*last) - weight_operations(*last->self_attention->qkv));
}

}  // namespace stretto::models
