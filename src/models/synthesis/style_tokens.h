#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/recurrent_layers.h"
#include "models/synthesis/synthesis_keys.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// From frames of a sound to one vector (Skerry-Ryan et al. 2018, arXiv:1803.09047): six 3 x 3
/// convolutions of stride 2 over time and bands with 32, 32, 64, 64, 128 and 128 channels, each
/// with batch norm and relu, and the last state of a GRU over what is left of time.
///
/// A sentence is convolved by itself, so that none sees the length of another; norms are over all
/// real places. R frames of all sentences, W numbers of a frame, B sentences.
class ReferenceEncoderImpl : public torch::nn::Module {
 public:
  ReferenceEncoderImpl(const nn::Init& init, int64_t width, const StyleTokenOptions& options);

  /// frames: values [R, W], no sentence without a frame -> [B, reference_dim]
  at::Tensor forward(const nn::PackedRows& frames) const;

 private:
  RecurrentPart part_;
  std::vector<nn::Conv2d> convolutions_;
  std::vector<nn::BatchNorm> norms_;
  RecurrentLayer gru_{nullptr};
};
TORCH_MODULE(ReferenceEncoder);

/// Style tokens (Wang et al. 2018, arXiv:1803.09017, section 3.1): attention of a reference to
/// tanh(tokens) in several heads. Without a reference every token counts the same.
class StyleTokensImpl : public torch::nn::Module {
 public:
  /// @param width  W, numbers of a frame
  StyleTokensImpl(const nn::Init& init, int64_t width, const StyleTokenOptions& options);

  /// reference: values [R, W], or without values for `sentences` sentences -> [B, dim]
  at::Tensor forward(const nn::PackedRows& reference, int64_t sentences) const;

 private:
  int64_t num_heads_;
  ReferenceEncoder reference_{nullptr};
  nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr};
  at::Tensor tokens_;  // [tokens, dim / heads]
};
TORCH_MODULE(StyleTokens);

}  // namespace stretto::models
