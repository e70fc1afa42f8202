#pragma once

#include <cstdint>
#include <memory>

#include "models/images/resnet.h"
#include "models/speech/speech_encoder.h"
#include "models/speech/square_resnet_options.h"

namespace stretto::models {

/// Utterances as pictures of one size: frames [N, F] of B utterances -> [B, 1, T, F]. A shorter
/// utterance stands in the middle, between zeros; of a longer one the middle is taken. What comes
/// of an utterance does not depend on others.
at::Tensor squares_of(const nn::PackedRows& frames, int64_t num_frames);

/// A residual network (models/images/resnet.h) over such pictures, as OpenSeq2Seq has it for speech
/// commands: the mean of each channel is the one row of an utterance. Parameters are those of
/// `resnet`, without its head.
///
/// OpenSeq2Seq cuts a longer utterance at a random place, and pads before it normalises.
class SquareResNetEncoder : public SpeechEncoder {
 public:
  SquareResNetEncoder(const SquareResNetOptions& options, const SpeechPart& part);

  Encoded forward(const nn::PackedRows& frames, const ForwardContext& context) override;
  int64_t width() const override { return resnet_->width(); }
  double operations(double length) const override;
  int64_t output_length(int64_t frames) const override { return frames > 0 ? 1 : 0; }
  at::Tensor first_filters() const override { return resnet_->first_filters(); }

 private:
  int64_t num_frames_, num_features_;
  std::shared_ptr<ResNet> resnet_;
};

}  // namespace stretto::models
