#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/speech/conv_block_options.h"
#include "models/speech/speech_encoder.h"
#include "nn/batch_norm.h"
#include "nn/conv1d.h"

namespace stretto::models {

/// What the options of all models of blocks come to.
struct TimeDelayShape {
  std::vector<ConvBlockOptions> blocks;
  bool clips = false;  ///< whether activations end at 20
  double dropout_scale = 1;
  nn::BatchNormOptions norm;

  /// @param of_options  their blocks (blocks_of)
  template <class Options>
  TimeDelayShape(const Options& options, std::vector<ConvBlockOptions> of_options)
      : blocks(std::move(of_options)),
        clips(options.activation == "clipped_relu"),
        dropout_scale(options.dropout_scale),
        norm{.momentum = options.norm_momentum,
             .epsilon = options.norm_epsilon,
             .single_by_running = true} {}
};

/// A block (conv_block_options.h): convolutions r = 0, 1, …, R - 1, each
///
///     x = dropout(activation(norm_r(conv_r(x)) (+ residuals, of the last one)))
///     residuals = sum over inputs i of residual_norm_i(residual_i(input_i))
///
/// A separable convolution is `depthwise_r` and then `conv_r`, a linear map. Parameters are
/// `conv0.weight`, `depthwise0.weight`, `norm0.weight`, `norm0.bias`, `residual0.weight`,
/// `residual_norm0.weight` and so on.
class TimeDelayBlockImpl : public torch::nn::Module {
 public:
  /// @param in      channels of the rows that it reads
  /// @param inputs  channels of the rows whose sum is added, in their order
  TimeDelayBlockImpl(const nn::Init& init, const ConvBlockOptions& options,
                     const TimeDelayShape& shape, int64_t in, const std::vector<int64_t>& inputs);

  /// Rows with values [N, C] -> rows with values [M, O].
  /// @param inputs  values [N, …] as the constructor's
  /// @param site    of the first convolution's dropout; those of the others follow
  nn::PackedRows forward(const nn::PackedRows& rows, const std::vector<at::Tensor>& inputs,
                         const ForwardContext& context, uint64_t site) const;

  /// Multiplications and additions for one row that comes out.
  double operations() const;
  /// [O, 1, time, features of a group], or of a separable one [C, 1, time, 1].
  at::Tensor first_filters() const;

 private:
  at::Tensor residuals(const nn::PackedRows& rows, const std::vector<at::Tensor>& inputs) const;

  double dropout_;
  bool clips_;
  int64_t stride_;
  std::vector<nn::Conv1d> depthwise_;  ///< empty where it is not separable
  std::vector<nn::Conv1d> convs_;
  std::vector<nn::BatchNorm> norms_;
  std::vector<nn::Conv1d> residual_convs_;
  std::vector<nn::BatchNorm> residual_norms_;
};
TORCH_MODULE(TimeDelayBlock);

/// A stack of such blocks: Wave2Letter+, Jasper, QuartzNet, and the encoder of Listen, Attend and
/// Spell. Convolutions are without biases, and their windows centred; rows are those of the last
/// block. Parameters are named like `blocks.3.conv0.weight`.
///
/// Where OpenSeq2Seq strides it pads by the length of the longest utterance, so that its rows begin
/// at frame 0 or 1 by that length being even; here they begin at frame 0.
class TimeDelayEncoder : public SpeechEncoder {
 public:
  TimeDelayEncoder(const TimeDelayShape& shape, const SpeechPart& part);

  Encoded forward(const nn::PackedRows& frames, const ForwardContext& context) override;
  int64_t width() const override { return shape_.blocks.back().channels; }
  double operations(double length) const override;
  int64_t output_length(int64_t frames) const override;
  at::Tensor first_filters() const override { return blocks_.front()->first_filters(); }

 private:
  TimeDelayShape shape_;
  std::vector<TimeDelayBlock> blocks_;
};

}  // namespace stretto::models
