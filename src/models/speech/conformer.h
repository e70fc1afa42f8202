#pragma once

#include <memory>
#include <vector>

#include "models/speech/conformer_layers.h"
#include "models/speech/conformer_options.h"
#include "models/speech/conformer_subsampling.h"
#include "models/speech/speech_encoder.h"

namespace stretto::models {

/// The encoder of a Conformer (Gulati et al. 2020, arXiv:2005.08100):
///
///     rows = layers(dropout(output(convolutions(frames))))
///
/// Every layer sees the whole utterance, so that there is no stream. In the paper a decoder or CTC
/// reads the last layer's rows, which end in a norm.
///
/// Shape letters: N frames and M rows of all utterances, F features of a frame, D model width.
class ConformerEncoder : public SpeechEncoder {
 public:
  ConformerEncoder(const ConformerOptions& options, const SpeechPart& part);

  /// values [N, F] -> keys [M, D].
  Encoded forward(const nn::PackedRows& frames, const ForwardContext& context) override;
  int64_t width() const override { return sizes_.d_model; }
  double operations(double length) const override;
  int64_t output_length(int64_t frames) const override;
  at::Tensor first_filters() const override { return subsampling_->first_filters(); }

 private:
  ConformerOptions options_;
  ConformerSizes sizes_;
  ConformerSubsampling subsampling_{nullptr};
  std::vector<ConformerLayer> layers_;
};

}  // namespace stretto::models
