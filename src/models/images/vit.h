#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/images/image_model.h"
#include "models/images/vit_options.h"
#include "nn/attention.h"
#include "nn/conv2d.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/packed_rows.h"

/// The vision Transformer (Dosovitskiy et al. 2020, arXiv:2010.11929).
///
/// Shape letters: B pictures, T rows of a picture (its patches, behind the class token if there is
/// one), N = B T rows of all, D model width, P patches.
namespace stretto::models {

class ResidualImpl;

/// Probabilities and sites of a layer's dropout.
struct VitLayerDropout {
  const VitOptions& options;
  nn::DropoutSource source;  ///< of the N rows
  double drop_path = 0;
  uint64_t first_site = 0;
};

/// x = x + attention(norm(x)), then x = x + ffn(norm(x)).
class VitLayerImpl : public torch::nn::Module {
 public:
  VitLayerImpl(const nn::Init& init, const VitOptions& options);
  /// x [N, D] -> [N, D]. @param wanted  int64 [B]: the one row of each picture to return, [B, D];
  /// undefined = all. Behind attention, nothing is computed of the others
  at::Tensor forward(const at::Tensor& x, const nn::PackedRows& rows,
                     const VitLayerDropout& dropout, const at::Tensor& wanted) const;

  nn::SelfAttention self_attention{nullptr};
  nn::FeedForward ffn{nullptr};

 private:
  std::shared_ptr<ResidualImpl> self_residual_, ffn_residual_;
};
TORCH_MODULE(VitLayer);

/// Patches as rows, layers, and a head over one row of each picture:
///
///     rows = dropout([class_token, patches(pixels)] + positions)
///     logits = head(final_norm(layers(rows))[class token])        or of the mean of all rows
///
/// `patches` is a convolution [D, C, p, p] whose stride is the size p of a patch. `positions` [T,
/// D] are learned for pictures of model.image_size; those of other sizes have them interpolated
/// (bicubic, with antialias), but for that of the class token, which is the first.
///
/// First weights are those of the paper's code: Xavier-uniform matrices, positions normal with
/// deviation 0.02, patches normal with variance 1 / fan_in, class token, biases and head zero. Only
/// queries, keys and values have the gain 1 / sqrt(2), as torchvision's (nn/attention.h).
class Vit : public ImageModel {
 public:
  Vit(const VitOptions& options, const ImagePart& part);

  at::Tensor forward(const ImageInput& input, const ForwardContext& context) override;
  int64_t rows_per_sample(int64_t height, int64_t width) const override;
  bool has_dropout() const override;
  double operations(int64_t height, int64_t width) const override;
  at::Tensor first_filters() const override { return patches_->weight; }

  /// Rows of the last layer, normed: [B, T, D], or [B, 1, D] of class tokens.
  at::Tensor encode(const ImageInput& input, const ForwardContext& context);

 private:
  bool has_class_token() const { return options_.pooling == "class_token"; }
  at::Tensor embed(const at::Tensor& pixels) const;
  at::Tensor positions_of(int64_t rows, int64_t columns) const;
  nn::PackedRows packed(int64_t pictures, int64_t length, const ImageInput& input) const;

  VitOptions options_;
  VitSizes sizes_;
  nn::Conv2d patches_{nullptr};
  at::Tensor class_token_;  // [D]; undefined without one
  at::Tensor positions_;    // [T, D]
  std::vector<VitLayer> layers_;
  nn::LayerNorm final_norm_{nullptr};
  nn::Linear head_{nullptr};
};

}  // namespace stretto::models
