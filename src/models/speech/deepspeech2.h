#pragma once

#include <memory>
#include <vector>

#include "models/recurrent_layers.h"
#include "models/speech/deepspeech2_options.h"
#include "models/speech/speech_encoder.h"
#include "nn/batch_norm.h"
#include "nn/conv1d.h"
#include "nn/linear.h"
#include "nn/packed_conv2d.h"

namespace stretto::models {

/// The encoder of DeepSpeech 2 (Amodei et al. 2015, arXiv:1512.02595) in OpenSeq2Seq's form:
///
///     x = activation(norm(conv(x)))                 each of `convolutions`, over time and features
///     x = recurrence_i(dropout(x))                  i = 0, 1, …; the first one without dropout
///     x = activation(norm(row_conv(x)))             unless row_convolution is 1
///     row = dropout(activation(output x))
///
/// A bidirectional recurrence gives both states side by side, forward first; its two directions
/// read the same rows. The recurrence itself has no norms. The row convolution has one filter for
/// each unit, over a row and those behind it; OpenSeq2Seq's is centred.
///
/// Parameters are named like `convolutions.0.conv.weight` and `convolutions.0.norm.weight`,
/// `recurrent.0.forward.input.weight` (in one direction `recurrent.0.input.weight`),
/// `row_conv.weight`, `row_norm.weight` and `output.weight`.
///
/// In one direction an utterance may come in pieces: a row waits for the frames that convolutions
/// and the row convolution see behind it.
class DeepSpeech2Encoder : public SpeechEncoder {
 public:
  DeepSpeech2Encoder(const DeepSpeech2Options& options, const SpeechPart& part);

  Encoded forward(const nn::PackedRows& frames, const ForwardContext& context) override;
  int64_t width() const override { return shape_.output_dim; }
  double operations(double length) const override;
  int64_t output_length(int64_t frames) const override;
  std::unique_ptr<RowStream> stream() override;
  at::Tensor first_filters() const override;

 private:
  friend class DeepSpeech2Stream;
  struct Convolution {
    nn::PackedConv2d conv{nullptr};
    nn::BatchNorm norm{nullptr};
  };
  struct Recurrence {
    RecurrentLayer forward{nullptr}, backward{nullptr};  ///< backward: null in one direction
  };

  void add_convolutions(const nn::Init& init, const nn::BatchNormOptions& norm);
  void add_recurrences(const nn::Init& init, int64_t in);
  /// Of convolution i: [N, W * C] -> [M, W' * O].
  at::Tensor convolved(size_t i, const at::Tensor& x, const kernels::Offsets& offsets) const;
  at::Tensor recurred(size_t i, const at::Tensor& x, const RecurrentPass& pass) const;
  at::Tensor behind_recurrences(const at::Tensor& x, const kernels::Offsets& offsets) const;
  at::Tensor projected(const at::Tensor& x) const;

  DeepSpeech2Shape shape_;
  int64_t num_features_, columns_;  ///< F, and the columns behind the convolutions
  bool clips_;
  double dropout_;
  RecurrentPart part_;
  std::vector<Convolution> convolutions_;
  std::vector<Recurrence> recurrences_;
  nn::Conv1d row_conv_{nullptr};  ///< null without a row convolution
  nn::BatchNorm row_norm_{nullptr};
  nn::Linear output_{nullptr};
};

}  // namespace stretto::models
