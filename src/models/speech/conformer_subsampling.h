#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/speech/conformer_options.h"
#include "nn/conv1d.h"
#include "nn/linear.h"
#include "nn/packed_conv2d.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// What stands in front of a Conformer's layers. With subsampling_factor 2^n there are n
/// convolutions with 3 taps and a stride of 2, each with a ReLU, and a linear map behind them:
///
///     conv2d   over time and frequency, D channels: F features become ceil(F / 2) at each of them
///     conv1d   over time, of F, then of D channels
///
/// A sequence of T frames gives ceil(T / 2^n) rows. Tap i of row t is row 2 t + i - 1 of the layer
/// below; beyond the ends of a sequence are zeroes, in each of the convolutions. The linear map
/// reads the channels of frequency 0, then those of frequency 1, and so on.
///
/// Shape letters: N frames and M rows of all sequences, F features of a frame, D model width.
class ConformerSubsamplingImpl : public torch::nn::Module {
 public:
  ConformerSubsamplingImpl(const nn::Init& init, const ConformerOptions& options,
                           int64_t num_features);
  /// values [N, F] -> values [M, D], with places and keys of their own.
  nn::PackedRows forward(const nn::PackedRows& frames) const;
  /// Multiplications and additions for one frame.
  double operations() const;
  /// Filters of the first layer, [D, 1, taps, features].
  at::Tensor first_filters() const;

 private:
  void add_convolutions(const nn::Init& init, const ConformerOptions& options);

  int64_t num_features_, d_model_, factor_;
  std::vector<nn::PackedConv2d> planes_;  // of conv2d
  std::vector<at::Tensor> plane_biases_;  // `bias` [D] of each
  std::vector<nn::Conv1d> times_;         // of conv1d
  nn::Linear output_{nullptr};
};
TORCH_MODULE(ConformerSubsampling);

}  // namespace stretto::models
